//! The pace at which rank tables are refreshed.

use core::time::Duration;

/// Tables are due once this part of what is known is new: before that they would hardly change.
const NEW_PART: u32 = 50;

/// Most completions between two refreshes.
const REFRESH_MOST: u32 = 100;

/// Most completions that wait until the loader is woken up. More often, wake-ups alone would take
/// more than 1 % of a CPU at 10,000 completions a second.
const WAKE_MOST: u32 = 256;

/// Refreshing the tables takes at most one part in this many of one CPU. A refresh with a
/// hundred functions takes milliseconds, and without this limit there is one for every hundred
/// completions.
const REFRESH_SHARE: u32 = 600;

/// Upper bound of the pause between refreshes, since the first one after a start may cover very
/// many functions.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

/// Returns the number of new completions after which the tables are refreshed, 1 to 100, if
/// `known` completions are known: a fiftieth of them. The first completions count at once,
/// because each tells much.
pub fn refresh_after(known: u32) -> u32 {
    (known / NEW_PART).clamp(1, REFRESH_MOST)
}

/// Returns the number of waiting completions that wake the loader up, 1 to 256, if `known`
/// completions are known.
pub fn wake_after(known: u32) -> u32 {
    (known / NEW_PART).clamp(1, WAKE_MOST)
}

/// Returns the pause after a refresh that has taken `busy` of CPU time.
pub fn pause_after(busy: Duration) -> Duration {
    REFRESH_AFTER.min(REFRESH_SHARE * busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_what_is_known() {
        let known = [0, 1, 99, 100, 1000, 5000, 12_800, u32::MAX];
        assert_eq!(known.map(refresh_after), [1, 1, 1, 2, 20, 100, 100, 100]);
        assert_eq!(known.map(wake_after), [1, 1, 1, 2, 20, 100, 256, 256]);
    }
}
