//! Counters and queueing delays of a CPU, as the kernel half publishes them.

use sfs_kernel_model::loader_ffi::maps;
use sfs_kernel_model::state::with;

/// The numbers of counters, in the order of `counters.h`.
pub mod counter {
    #![allow(missing_docs)] // counters.h says what each counts
    pub const ARRIVALS: usize = 0;
    pub const COMPLETIONS: usize = 1;
    pub const COMPLETIONS_IN_CREDIT: usize = 2;
    pub const DEMOTIONS: usize = 3;
    pub const IO_RETURNS: usize = 5;
    pub const BEGUN_BY_FORK: usize = 6;
    pub const BEGUN_BY_EXEC: usize = 7;
    pub const BEGUN_BY_ACCEPT: usize = 8;
    pub const BEGUN_BY_RECEIVE: usize = 9;
    pub const BEGUN_BY_HINT: usize = 10;
    pub const BEGUN_BY_IDLE: usize = 11;
    pub const MERGED: usize = 12;
    pub const FILTER_STARTS: usize = 13;
    pub const FILTER_DELAY_NS: usize = 14;
    pub const UNLEARNED: usize = 17;
    pub const SYSTEM_WAKEUPS: usize = 21;
    pub const LOST_EVENTS: usize = 27;
}

/// Number of counters.
const COUNTERS: usize = 28;
/// Buckets of delays.
const DELAYS: usize = 32;

/// `struct sfs_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// By number.
    pub counters: [u64; COUNTERS],
    /// Queueing delays, by the number of significant bits of their microseconds.
    pub delays: [u64; DELAYS],
    /// The longest of them, ns.
    pub longest: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            counters: [0; COUNTERS],
            delays: [0; DELAYS],
            longest: 0,
        }
    }
}

impl Stats {
    /// Adds the delay of a FILTER start, ns.
    pub fn add_delay(&mut self, ns: u64) {
        self.counters[counter::FILTER_STARTS] += 1;
        self.counters[counter::FILTER_DELAY_NS] += ns;
        let bits = u64::BITS - (ns / 1_000).leading_zeros();
        self.delays[bits.min(DELAYS as u32 - 1) as usize] += 1;
        self.longest = self.longest.max(ns);
    }
}

/// Those of the CPU on which the kernel half runs.
pub fn here() -> Stats {
    let (map, key) = (maps().stats, 0_u32);
    with(|s| {
        let of = &s.maps[&(map as usize)];
        if of.value_size() != size_of::<Stats>() {
            return Stats::default();
        }
        // SAFETY: the map has this key, a value for each CPU, and values of this size.
        unsafe { *of.lookup((&raw const key).cast(), s.here).cast::<Stats>() }
    })
}
