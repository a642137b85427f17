//! The kernel half's counters, as the loader reads them.

use anyhow::Result;
use tracing::warn;

use crate::bpf_intf::{sfs_counter_SFS_SYSTEM_WAKEUPS as WAKEUPS, sfs_stats};

// `with_kernel_counters!`: hands the list of the counters to another macro.
include!(concat!(env!("OUT_DIR"), "/counters.rs"));
pub(crate) use with_kernel_counters;

/// The kernel half's counters as they could be read last: they do not go back to nothing
/// because of a read that fails.
#[derive(Default)]
pub struct LastRead {
    per_cpu: Vec<sfs_stats>,
}

impl LastRead {
    /// Returns what has been read, or what was before if that has failed, which is said.
    pub fn keep(&mut self, read: Result<Vec<sfs_stats>>) -> &[sfs_stats] {
        match read {
            Ok(per_cpu) => self.per_cpu = per_cpu,
            Err(error) => warn!("{error:#}; the statistics are those of before"),
        }
        &self.per_cpu
    }
}

/// Whether the kernel half schedules: it counts wake-ups of the loader, among others, and
/// of these there has been one since the last time, as the loader waits in between.
pub struct Wakeups {
    /// What had been counted the last time; `None`: the loader is not scheduled by it.
    before: Option<u64>,
}

impl Wakeups {
    /// Nothing has been counted. `are_counted`: it schedules the loader.
    pub fn new(are_counted: bool) -> Self {
        Self {
            before: are_counted.then_some(0),
        }
    }

    /// Checks what `read` returns now.
    ///
    /// # Errors
    ///
    /// A sentence: there have been none, or they cannot be read.
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
