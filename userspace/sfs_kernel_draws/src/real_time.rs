//! Tasks of a higher class than sched_ext's.

use crate::numbers::{between, MS, US};
use rand_chacha::ChaCha8Rng;

/// How real-time tasks behave on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealTime {
    /// Mean time between two wake-ups on one CPU, ns.
    pub gap_ns: u64,
    /// Mean CPU time, ns.
    pub runs_ns: u64,
    /// They may wake up on CPUs below this number.
    pub cpus: u64,
}

impl RealTime {
    /// Those of a machine with `cpus` CPUs. They use at most about two thirds of the CPUs that they
    /// may have.
    pub fn draw(random: &mut ChaCha8Rng, cpus: u64) -> Self {
        let runs_ns = [50 * US, 500 * US, 10 * MS, 80 * MS][between(random, 0, 3) as usize];
        Self {
            gap_ns: runs_ns * between(random, 15, 300) / 10,
            runs_ns,
            cpus: if between(random, 0, 1) == 0 {
                cpus
            } else {
                cpus.div_ceil(4)
            },
        }
    }
}
