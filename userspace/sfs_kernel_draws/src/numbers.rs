//! Random numbers, and units of time.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// ns in a microsecond.
pub const US: u64 = 1_000;
/// ns in a millisecond.
pub const MS: u64 = 1_000_000;

/// A time from an exponential distribution, at least 1 us; in ns.
pub fn exponential(random: &mut ChaCha8Rng, mean_ns: u64) -> u64 {
    let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    ((-(1.0 - uniform).ln() * mean_ns as f64) as u64).max(US)
}

/// A number from `from` to `to`.
pub fn between(random: &mut ChaCha8Rng, from: u64, to: u64) -> u64 {
    from + random.next_u64() % (to - from + 1)
}
