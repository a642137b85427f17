//! Demand that grew at switches, as of `faasbench run --refill`.

use crate::stats;
use serde::{Deserialize, Serialize};

/// What was added to all invocations, failed ones included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refill {
    /// CPU time in microseconds for a switch on the same CPU.
    pub switch_us: u32,
    /// The same for a switch to another CPU.
    pub core_us: u32,
    /// The same for one to a CPU at another last-level cache.
    pub cache_us: u32,
    /// The same for one to a CPU on another NUMA node.
    pub node_us: u32,
    /// Number of switches for which CPU time was added.
    pub refills: u64,
    /// Of these, the switches to another CPU at the same last-level cache.
    pub cores: u64,
    /// Of these, the switches to another last-level cache on the same NUMA node.
    pub caches: u64,
    /// Of these, the switches to another NUMA node.
    pub nodes: u64,
    /// The CPU time added, in milliseconds.
    pub refill_ms: f64,
}

impl Refill {
    /// What `counts` switches of each kind add at these amounts in microseconds. The kinds are
    /// in the order of the fields.
    pub fn of(us: [u32; 4], counts: [u64; 4]) -> Self {
        let [switch_us, core_us, cache_us, node_us] = us;
        let [_, cores, caches, nodes] = counts;
        let added_us: u64 = us
            .iter()
            .zip(counts)
            .map(|(us, n)| u64::from(*us) * n)
            .sum();
        Self {
            switch_us,
            core_us,
            cache_us,
            node_us,
            refills: counts.iter().sum(),
            cores,
            caches,
            nodes,
            refill_ms: stats::round(added_us as f64 / 1e3, 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_time_is_the_sum_over_the_kinds() {
        let found = Refill::of([1, 20, 300, 4000], [5, 4, 3, 2]);
        assert_eq!(found.refills, 14);
        assert_eq!((found.cores, found.caches, found.nodes), (4, 3, 2));
        assert_eq!(found.refill_ms, 8.985);
    }
}
