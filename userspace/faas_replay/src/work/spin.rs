//! Arithmetic in registers: almost nothing but CPU time.

use std::hint::black_box;

/// Shortest stretch in rounds: some 0.5 us, well below the cost of a check of
/// the clock.
pub const SHORTEST: u64 = 200;

/// Computes for `count` rounds, each a few nanoseconds.
pub fn rounds(count: u64) {
    let mut value = black_box(1u64);
    for _ in 0..count {
        value = value
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    black_box(value);
}
