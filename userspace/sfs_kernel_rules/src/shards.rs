//! FILTER's shards: each has a part of the CPUs. A task waits in that of its CPU, or in another one
//! with fewer tasks.

use crate::look::Look;
use crate::queues::{seen, FILTER};
use sfs_kernel_model::state::with;

/// The shard of the task's CPU.
pub fn own(l: &Look) -> u64 {
    FILTER + with(|s| u64::from(s.odd.of.shard_of(l.cpu as usize, s.cpus.len())))
}

/// Returns `chosen` if the task may wait there, else a shard where it may. One other shard, in turn,
/// is compared with its own; a task that may not use all CPUs stays in its own.
pub fn choice(l: &Look, chosen: u64) -> u64 {
    let own = own(l);
    if l.nr_cpus < l.cpus {
        return own;
    }
    let is_shorter = |shard: &u64| seen(l, *shard) < seen(l, own);
    let others = (FILTER..FILTER + l.nr_shards as u64).filter(|shard| *shard != own);
    let (mut may, longer): (Vec<u64>, Vec<u64>) = others.partition(is_shorter);
    if !longer.is_empty() {
        may.push(own);
    }
    if may.contains(&chosen) {
        chosen
    } else {
        may[0]
    }
}
