//! What the metrics of a fleet are made of: everything since load, in one answer.

use sfs_bpf::bpf_intf::{sfs_counter_SFS_FILTER_DELAY_NS, sfs_stats, SFS_DELAY_BUCKETS};

use super::times::{FunctionTimes, Times};
use super::Metrics;

/// The queueing delays of all FILTER and ranked work: one for each time that a task got a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delays {
    /// Number of delays in each bucket: those whose microseconds have as many significant bits as
    /// the bucket's number. So bucket b ends at 2^b us.
    pub buckets: Vec<u64>,
    /// Their sum, in ns.
    pub sum_ns: u64,
}

impl Delays {
    /// Sums the delays of all CPUs.
    pub fn new(per_cpu: &[sfs_stats]) -> Self {
        let bucket = |b: usize| per_cpu.iter().map(|one| one.delay[b]).sum();
        let sum = sfs_counter_SFS_FILTER_DELAY_NS as usize;
        Self {
            buckets: (0..SFS_DELAY_BUCKETS as usize).map(bucket).collect(),
            sum_ns: per_cpu.iter().map(|one| one.counter[sum]).sum(),
        }
    }
}

/// All that is exported. Counts are since load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Export {
    /// The statistics.
    pub metrics: Metrics,
    /// The queueing delays of all work.
    pub delays: Delays,
    /// The functions with times of their own, by name.
    pub functions: Vec<FunctionTimes>,
    /// The times of all other functions together.
    pub other: Times,
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn the_delays_of_all_cpus_are_summed_up() {
        let mut one = sfs_stats::new_zeroed();
        one.delay[3] = 5;
        one.counter[sfs_counter_SFS_FILTER_DELAY_NS as usize] = 7;
        let delays = Delays::new(&[one, one]);
        assert_eq!((delays.buckets[3], delays.buckets[2]), (10, 0));
        assert_eq!(delays.sum_ns, 14);
        assert_eq!(delays.buckets.len(), 32);
    }
}
