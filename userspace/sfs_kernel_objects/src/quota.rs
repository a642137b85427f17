//! The account of a group with a quota: cpu.max, counted beside the kernel half.

/// The account of a group since its limit was set last. All times are ns of CLOCK_MONOTONIC, or
/// of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// CPU time in a period.
    pub quota_ns: u64,
    /// The period.
    pub period_ns: u64,
    /// Quota that may be saved up.
    pub burst_ns: u64,
    /// The begin of the present period.
    pub start: u64,
    /// CPU time used in it; negative: saved up; above the quota: a debt.
    pub used: i64,
    /// The same without the time for which tasks cannot be held back.
    pub strict: i64,
    /// Since when there has been quota; `None`: it is used up.
    pub has_quota_since: Option<u64>,
    /// When it was used up last.
    pub used_up_at: u64,
    /// Tasks have been let go without quota, for the kernel's watchdog.
    pub let_go: bool,
}

impl Account {
    /// A limit that is set at `now`.
    pub fn new(quota_ns: u64, period_ns: u64, burst_ns: u64, now: u64) -> Self {
        Self {
            quota_ns,
            period_ns,
            burst_ns,
            start: now,
            used: 0,
            strict: 0,
            has_quota_since: Some(now),
            used_up_at: 0,
            let_go: false,
        }
    }

    /// Time passes. As in __refill_cfs_bandwidth_runtime(), each period adds the quota, up to the
    /// quota and the burst; other than there, a debt is paid with it.
    pub fn pass(&mut self, now: u64) {
        let periods = now.saturating_sub(self.start) / self.period_ns;
        if periods == 0 {
            return;
        }
        let quota = self.quota_ns as i64;
        if self.used >= quota {
            let needed = ((self.used - quota) / quota) as u64 + 1;
            if periods >= needed {
                self.has_quota_since = Some(self.start + needed * self.period_ns);
            }
        }
        self.start += periods * self.period_ns;
        let back = (periods * self.quota_ns) as i64;
        self.used -= back.min(self.used + self.burst_ns as i64);
        self.strict -= back.min(self.strict + self.burst_ns as i64);
        if self.strict < quota {
            self.let_go = false;
        }
    }

    /// A task has used CPU time: all of it, and the part for which it could have been held back.
    pub fn charge(&mut self, used_ns: u64, strict_ns: u64, now: u64) {
        self.pass(now);
        self.used += used_ns as i64;
        self.strict += strict_ns as i64;
        if self.used >= self.quota_ns as i64 && self.has_quota_since.take().is_some() {
            self.used_up_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_takes_as_many_periods_as_it_needs() {
        let mut account = Account::new(10, 100, 0, 1_000);
        account.charge(35, 35, 1_050);
        assert_eq!((account.used, account.has_quota_since), (35, None));
        account.pass(1_250);
        assert_eq!((account.used, account.has_quota_since), (15, None));
        account.pass(1_300);
        assert_eq!((account.used, account.has_quota_since), (5, Some(1_300)));
    }

    #[test]
    fn burst_bounds_what_is_saved_up() {
        let mut account = Account::new(10, 100, 4, 0);
        account.pass(1_000);
        assert_eq!((account.used, account.start), (-4, 1_000));
        account.charge(14, 3, 1_010);
        assert_eq!((account.used, account.strict), (10, -1));
        assert_eq!(account.has_quota_since, None);
    }
}
