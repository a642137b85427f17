//! The pace at which tables are refreshed.

use std::time::{Duration, Instant};

use sfs_policy::learn::pause_after;

/// Limits how often an expensive operation runs.
#[derive(Debug, Default)]
pub(super) struct Pace {
    not_before: Option<Instant>,
}

impl Pace {
    /// Returns how long the operation has to wait at `now`.
    pub(super) fn left(&self, now: Instant) -> Duration {
        let left = |time: Instant| time.saturating_duration_since(now);
        self.not_before.map_or(Duration::ZERO, left)
    }

    /// Notes that the operation ended at `end` and took `busy`.
    pub(super) fn done(&mut self, busy: Duration, end: Instant) {
        self.not_before = Some(end + pause_after(busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_operations_run_rarely() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::default();
        assert_eq!(pace.left(start), Duration::ZERO);
        pace.done(Duration::from_millis(5), ms(5));
        assert_eq!(pace.left(ms(3004)), Duration::from_millis(1));
        assert_eq!(pace.left(ms(3005)), Duration::ZERO);
        pace.done(Duration::from_millis(1000), ms(1000));
        assert_eq!(pace.left(ms(5000)), Duration::from_secs(1));
        assert_eq!(pace.left(ms(7000)), Duration::ZERO);
    }
}
