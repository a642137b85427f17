//! Branches on pseudo-random words, which no predictor learns: the key is
//! another one in each round.

use super::{lines, Line};
use std::collections::TryReserveError;
use std::hint::black_box;

/// The first key, and what each round adds to it: so all are odd.
const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd1b5_4a32_d192_ed02;

/// Words in a line.
const WORDS: usize = 8;

/// Lines of pseudo-random words.
#[derive(Debug)]
pub(super) struct Branch {
    lines: Vec<Line>,
    at: usize,
    key: u64,
    value: u64,
}

impl Branch {
    /// `count` lines, at least one.
    pub(super) fn new(count: usize) -> Result<Self, TryReserveError> {
        let line = |number: usize| {
            let word = mix(number as u64);
            Line([0, 1, 2, 3, 4, 5, 6, 7].map(|turn| word.rotate_left(8 * turn)))
        };
        Ok(Self {
            lines: lines(count, line)?,
            at: 0,
            key: KEY,
            value: 1,
        })
    }

    /// Takes the next `count` branches; returns what the arms have computed.
    pub(super) fn run(&mut self, count: u64) -> u64 {
        let lines = black_box(&self.lines[..]);
        let (mut at, mut key, mut value) = (self.at, self.key, self.value);
        for _ in 0..count {
            let word = lines[at / WORDS].0[at % WORDS];
            // A black box, so that the arms remain arms.
            if word.wrapping_mul(key) >> 63 == 0 {
                value = black_box(value.wrapping_add(word));
            } else {
                value = value.rotate_left(7) ^ word;
            }
            at += 1;
            if at == lines.len() * WORDS {
                at = 0;
                key = key.wrapping_add(STEP);
            }
        }
        (self.at, self.key, self.value) = (at, key, value);
        black_box(value)
    }
}

/// The finaliser of splitmix64.
fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_mul(KEY).wrapping_add(KEY);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by another loop, and how often the first arm was taken.
    fn plain(lines: usize, count: u64) -> (u64, u64) {
        let (mut value, mut first) = (1u64, 0);
        for number in 0..count {
            let (round, at) = (number / (8 * lines as u64), number % (8 * lines as u64));
            let word = mix(at / 8).rotate_left(8 * (at % 8) as u32);
            let key = KEY.wrapping_add(STEP.wrapping_mul(round));
            if (word.wrapping_mul(key) as i64) < 0 {
                value = value.rotate_left(7) ^ word;
            } else {
                value = value.wrapping_add(word);
                first += 1;
            }
        }
        (value, first)
    }

    #[test]
    fn each_branch_is_taken_once_and_half_go_either_way() {
        for count in [0, 1, 255, 256, 257, 10_000] {
            let found = Branch::new(32).unwrap().run(count);
            assert_eq!(found, plain(32, count).0, "{count}");
        }
        let (_, first) = plain(32, 10_000);
        assert!((4_500..5_500).contains(&first), "{first}");
    }
}
