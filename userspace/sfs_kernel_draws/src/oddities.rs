//! What only some machines have: FILTER in shards, hints from a platform, too little memory, and
//! times in which the kernel serves all tasks itself.

use crate::numbers::{between, MS, US};
use rand_chacha::ChaCha8Rng;

/// The shards of a machine at most.
const MOST_SHARDS: u64 = 8;

/// What a seed draws of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oddities {
    /// FILTER's shards.
    pub shards: u32,
    /// One allocation of so many fails, after load; 0: none does.
    pub no_memory_of: u64,
    /// Mean time between calls that apply hints, ns; 0: there are none.
    pub hints_ns: u64,
    /// Mean time between two bypasses, ns; 0: there are none.
    pub bypass_ns: u64,
    /// The kernel is Linux 6.19 or later: what leaves a CPU inside a section without migration is
    /// told so first.
    pub confines_first: bool,
}

impl Default for Oddities {
    fn default() -> Self {
        Self {
            shards: 1,
            no_memory_of: 0,
            hints_ns: 0,
            bypass_ns: 0,
            confines_first: false,
        }
    }
}

impl Oddities {
    /// Those of a machine with `cpus` CPUs.
    pub fn draw(random: &mut ChaCha8Rng, cpus: usize) -> Self {
        let most = (cpus as u64).min(MOST_SHARDS);
        let shards = between(random, 2, most.max(2)) as u32;
        let has_shards = between(random, 0, 3) == 0 && most > 1;
        let memory = [2, 10, 100][between(random, 0, 2) as usize];
        let hints = [100 * US, MS, 10 * MS][between(random, 0, 2) as usize];
        Self {
            shards: if has_shards { shards } else { 1 },
            no_memory_of: if between(random, 0, 5) == 0 {
                memory
            } else {
                0
            },
            hints_ns: if between(random, 0, 3) == 0 { hints } else { 0 },
            bypass_ns: 0,
            confines_first: false,
        }
    }

    /// The same on an older or a newer kernel, by random numbers of its own.
    pub fn with_a_kernel(self, random: &mut ChaCha8Rng) -> Self {
        Self {
            confines_first: between(random, 0, 1) == 1,
            ..self
        }
    }

    /// The same with bypasses, or without, by random numbers of their own.
    pub fn with_bypasses(self, random: &mut ChaCha8Rng) -> Self {
        let mean = [20 * MS, 100 * MS, 400 * MS][between(random, 0, 2) as usize];
        let has_them = between(random, 0, 5) == 0;
        Self {
            bypass_ns: if has_them { mean } else { 0 },
            ..self
        }
    }

    /// Returns true if memory never lacks, and no task is served by the kernel itself.
    pub fn is_usual(&self) -> bool {
        self.no_memory_of == 0 && self.bypass_ns == 0
    }

    /// The shard of a CPU: neighbours share one.
    pub fn shard_of(&self, cpu: usize, cpus: usize) -> u8 {
        (cpu * self.shards as usize / cpus) as u8
    }
}
