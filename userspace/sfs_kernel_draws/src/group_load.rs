//! Control groups that a seed draws, and what happens to them.

use crate::numbers::{between, MS};
use rand_chacha::ChaCha8Rng;

/// What a seed draws about control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupLoad {
    /// Most groups at a time, without the root; 0: none, and none of the following happens.
    pub most: usize,
    /// Levels below the root.
    pub depth: u32,
    /// Mean time between changes of groups, ns.
    pub changes_ns: u64,
    /// So many per cent of the tasks are born in a group below the root.
    pub members: u64,
    /// One change of so many creates or removes many groups at once.
    pub storms_of: u64,
    /// So many per cent of new limits are a quota.
    pub quotas: u64,
    /// Only tasks in sandboxes are functions.
    pub only_sandboxes: bool,
    /// The tasks of a sandbox share a credit.
    pub unit_is_cgroup: bool,
    /// By so much CLOCK_MONOTONIC is faster than the clock of CPU time, in millionths.
    pub drift_ppm: i64,
    /// Nothing changes: groups of hogs share the machine by weight.
    pub is_steady: bool,
}

impl GroupLoad {
    /// Half of the seeds have no groups, and a tenth compare weights.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        match between(random, 0, 19) {
            0..=9 => Self::default(),
            10 | 11 => Self::steady(random),
            _ => Self::busy(random),
        }
    }

    fn steady(random: &mut ChaCha8Rng) -> Self {
        Self {
            most: between(random, 2, 4) as usize,
            depth: 2,
            is_steady: true,
            ..Self::default()
        }
    }

    fn busy(random: &mut ChaCha8Rng) -> Self {
        Self {
            most: [3, 10, 30, 200][between(random, 0, 3) as usize],
            // The kernel half keeps 32 levels.
            depth: [1, 2, 3, 6, 6, 40][between(random, 0, 5) as usize],
            changes_ns: [MS / 5, 2 * MS, 20 * MS][between(random, 0, 2) as usize],
            members: between(random, 20, 100),
            storms_of: between(random, 4, 40),
            quotas: between(random, 0, 90),
            only_sandboxes: between(random, 0, 2) == 0,
            unit_is_cgroup: between(random, 0, 2) == 0,
            // adjtimex() may slow the clock down, or speed it up, by a tenth.
            drift_ppm: [0, 0, 500, -500, 100_000, -100_000][between(random, 0, 5) as usize],
            is_steady: false,
        }
    }
}
