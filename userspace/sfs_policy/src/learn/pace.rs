//! The pace at which rank tables are refreshed.

use core::time::Duration;

/// Refreshing the tables takes at most one part in this many of one CPU. A refresh with a
/// hundred functions takes milliseconds, and without this limit there is one for every hundred
/// completions.
const REFRESH_SHARE: u32 = 400;

/// Upper bound of the pause between refreshes, since the first one after a start may cover very
/// many functions.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

/// Returns the pause after a refresh that has taken `busy` of CPU time.
pub fn pause_after(busy: Duration) -> Duration {
    REFRESH_AFTER.min(REFRESH_SHARE * busy)
}
