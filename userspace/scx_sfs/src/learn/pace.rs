//! How often the tables are made.

use std::time::{Duration, Instant};

/// Making the tables takes one part in so many of one CPU at most: with a hundred functions it
/// is a matter of milliseconds, and of as many in a second as there are hundreds of
/// completions.
const REFRESH_SHARE: u32 = 400;

/// But they are not older than this: the first after a start may be those of very many
/// functions.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

/// Keeps something that takes long from being done too often.
#[derive(Debug, Default)]
pub(super) struct Pace {
    not_before: Option<Instant>,
}

impl Pace {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| now >= time)
    }

    /// It has been done until `end`, and has taken so long.
    pub(super) fn done(&mut self, busy: Duration, end: Instant) {
        self.not_before = Some(end + REFRESH_AFTER.min(REFRESH_SHARE * busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_seldom() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::default();
        assert!(pace.is_due(start));
        pace.done(Duration::from_millis(5), ms(5));
        assert!(!pace.is_due(ms(2004)));
        assert!(pace.is_due(ms(2005)));
        pace.done(Duration::from_millis(1000), ms(1000));
        assert!(pace.is_due(ms(6000)));
    }
}
