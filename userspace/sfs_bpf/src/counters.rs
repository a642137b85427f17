//! The kernel half's counters, as read by the loader.

use anyhow::Result;
use tracing::warn;

use crate::bpf_intf::{sfs_counter_SFS_SYSTEM_WAKEUPS as WAKEUPS, sfs_stats};

// `with_kernel_counters!`, exported to the statistics.
include!(concat!(env!("OUT_DIR"), "/counters.rs"));

/// The kernel half's counters as last read, so that a failed read does not reset them to 0.
#[derive(Default)]
pub struct LastRead {
    per_cpu: Vec<sfs_stats>,
}

impl LastRead {
    /// Returns the values just read, or the previous ones if reading failed, which is logged.
    pub fn keep(&mut self, read: Result<Vec<sfs_stats>>) -> &[sfs_stats] {
        match read {
            Ok(per_cpu) => self.per_cpu = per_cpu,
            Err(error) => warn!("{error:#}; the statistics are the previous ones"),
        }
        &self.per_cpu
    }

    /// Returns the values that were read last.
    pub fn last(&self) -> &[sfs_stats] {
        &self.per_cpu
    }
}

/// Checks that the kernel half schedules. It counts wake-ups, including the loader's. The
/// loader waits between two checks, so there must have been at least one.
pub struct Wakeups {
    /// The count at the last check; `None`: the kernel half does not schedule the loader.
    before: Option<u64>,
}

impl Wakeups {
    /// Starts with a count of 0. `are_counted`: the kernel half schedules the loader.
    pub fn new(are_counted: bool) -> Self {
        Self {
            before: are_counted.then_some(0),
        }
    }

    /// Checks the counters that `read` returns.
    ///
    /// # Errors
    ///
    /// A sentence: there were no wake-ups, or the counters cannot be read.
    pub fn check(&mut self, read: impl FnOnce() -> Result<Vec<sfs_stats>>) -> Result<(), String> {
        let Some(before) = self.before else {
            return Ok(());
        };
        let per_cpu = read().map_err(|error| format!("{error:#}"))?;
        let counts = per_cpu.iter().map(|one| one.counter[WAKEUPS as usize]);
        let now = counts.sum();
        self.before = Some(now);
        if now == before {
            return Err("the kernel half counts no wake-ups, not even the loader's".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn a_read_that_fails_leaves_the_counters() {
        let mut one = sfs_stats::new_zeroed();
        one.delay_max = 7;
        let mut counters = LastRead::default();
        assert!(counters.keep(Err(anyhow::anyhow!("not now"))).is_empty());
        assert_eq!(counters.keep(Ok(vec![one])).len(), 1);
        let kept = counters.keep(Err(anyhow::anyhow!("not now")));
        assert_eq!((kept.len(), kept[0].delay_max), (1, 7));
    }

    #[test]
    fn a_kernel_half_that_counts_no_wake_ups_does_not_schedule() {
        let counted = |count: u64| {
            let mut one = sfs_stats::new_zeroed();
            one.counter[WAKEUPS as usize] = count;
            move || Ok(vec![one])
        };
        let mut wakeups = Wakeups::new(true);
        assert!(wakeups.check(counted(3)).is_ok());
        assert!(wakeups.check(counted(3)).is_err());
        assert!(wakeups.check(counted(4)).is_ok());
        assert!(wakeups.check(|| Err(anyhow::anyhow!("not now"))).is_err());
        let mut partial = Wakeups::new(false);
        assert!(partial.check(counted(0)).is_ok());
        assert!(partial.check(counted(0)).is_ok());
    }
}
