//! A chase of pointers: each line has the place of the next one.

use super::{lines, Line};
use std::collections::TryReserveError;
use std::hint::black_box;

/// Knuth's linear congruential generator (MMIX), which has a full period
/// modulo each power of two.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const STEP: u64 = 1_442_695_040_888_963_407;

/// An odd number: to multiply by it permutes the numbers below a power of two.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Lines in a pseudo-random circle.
#[derive(Debug)]
pub(super) struct Chase {
    lines: Vec<Line>,
    at: usize,
}

impl Chase {
    /// A circle of `count` lines, a power of two from 4 on.
    pub(super) fn new(count: usize) -> Result<Self, TryReserveError> {
        let mut lines = lines(count, |_| Line([0; 8]))?;
        let start = place(0, count);
        let (mut number, mut at) = (0u64, start);
        for _ in 0..count {
            number = number.wrapping_mul(FACTOR).wrapping_add(STEP) & (count as u64 - 1);
            let next = place(number, count);
            lines[at].0[0] = next as u64;
            at = next;
        }
        Ok(Self { lines, at: start })
    }

    /// Follows `count` pointers; returns where that leads.
    pub(super) fn run(&mut self, count: u64) -> u64 {
        let lines = black_box(&self.lines[..]);
        let mut at = self.at;
        for _ in 0..count {
            at = lines[at].0[0] as usize;
        }
        self.at = black_box(at);
        at as u64
    }
}

/// The place of the number'th line: a permutation of the numbers below `count`,
/// since the low bits of the generator alone are regular.
fn place(number: u64, count: usize) -> usize {
    let (mask, half) = (count as u64 - 1, count.trailing_zeros() / 2);
    let mixed = (number ^ number >> half).wrapping_mul(ODD) & mask;
    (mixed ^ mixed >> half) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_has_every_line_once() {
        for count in [4, 512, 1 << 14] {
            let mut chase = Chase::new(count).unwrap();
            let start = chase.run(0);
            let mut seen = vec![false; count];
            for _ in 0..count {
                let at = chase.run(1) as usize;
                assert!(!std::mem::replace(&mut seen[at], true), "{at} of {count}");
            }
            assert_eq!(chase.run(0), start);
            // So the number of iterations is exact.
            let one = chase.run(1);
            assert_eq!(chase.run(5 * count as u64), one);
        }
    }

    #[test]
    fn no_stride_is_frequent() {
        let count = 1 << 14;
        let mut chase = Chase::new(count).unwrap();
        let mut strides = std::collections::BTreeMap::new();
        for _ in 0..count {
            let from = chase.run(0) as i64;
            *strides.entry(chase.run(1) as i64 - from).or_insert(0) += 1;
        }
        let most = strides.values().max().unwrap();
        assert!(*most < count / 100, "{most} equal strides");
    }
}
