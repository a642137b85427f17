//! The pace at which tables are refreshed.

use std::time::{Duration, Instant};

use sfs_policy::learn::pause_after;

/// Limits how often an expensive operation runs.
#[derive(Debug, Default)]
pub(super) struct Pace {
    not_before: Option<Instant>,
}

impl Pace {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| now >= time)
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
        assert!(pace.is_due(start));
        pace.done(Duration::from_millis(5), ms(5));
        assert!(!pace.is_due(ms(2004)));
        assert!(pace.is_due(ms(2005)));
        pace.done(Duration::from_millis(1000), ms(1000));
        assert!(pace.is_due(ms(6000)));
    }
}
