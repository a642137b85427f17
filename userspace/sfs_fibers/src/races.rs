//! How often work pauses, and for how long.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// A helper counts for so much (HELPER_COUNTS in `sfs_kernel_model/c/points.h`).
const HELPER: u64 = 64;

/// How callbacks of a machine interleave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Races {
    /// Helpers and atomic operations from one pause to the next, on average.
    pub gap: u64,
    /// A plain access to memory counts as this many 64ths of a helper.
    pub access: u32,
    /// A callback pauses for so long in all, ns.
    pub longest_ns: u64,
}

impl Races {
    /// Half of the seeds have none.
    pub fn draw(random: &mut ChaCha8Rng) -> Option<Self> {
        let mut one_of = |all: &[u64]| all[random.next_u64() as usize % all.len()];
        let has_some = one_of(&[0, 1]) == 0;
        let races = Self {
            gap: one_of(&[2, 5, 20, 100, 1_000]),
            access: one_of(&[0, 1, 4, 16, 64]) as u32,
            longest_ns: one_of(&[1_000, 5_000, 20_000, 50_000]),
        };
        has_some.then_some(races)
    }

    /// What is counted until the next pause: from an exponential distribution.
    pub fn counts(&self, random: &mut ChaCha8Rng) -> i64 {
        let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - uniform).ln() * (self.gap * HELPER) as f64) as i64
    }
}
