//! A sum over lines, one after the other.

use super::{lines, Line};
use std::collections::TryReserveError;
use std::hint::black_box;

/// Lines of numbers.
#[derive(Debug)]
pub(super) struct Sum {
    lines: Vec<Line>,
    at: usize,
}

impl Sum {
    /// `count` lines, at least one.
    pub(super) fn new(count: usize) -> Result<Self, TryReserveError> {
        let line = |number: usize| Line([0, 1, 2, 3, 4, 5, 6, 7].map(|word| number as u64 + word));
        let lines = lines(count, line)?;
        Ok(Self { lines, at: 0 })
    }

    /// The sum of the next `count` lines.
    pub(super) fn run(&mut self, count: u64) -> u64 {
        let (mut sum, mut left) = (0u64, count);
        while left > 0 {
            let rest = self.lines.len() - self.at;
            let stretch = usize::try_from(left).unwrap_or(rest).min(rest);
            // The optimiser does not know that it has seen them before.
            let lines = black_box(&self.lines[self.at..self.at + stretch]);
            for line in lines {
                // Not an iterator over words, which takes several times the instructions.
                let [a, b, c, d, e, f, g, h] = line.0;
                let left = a.wrapping_add(b).wrapping_add(c).wrapping_add(d);
                let right = e.wrapping_add(f).wrapping_add(g).wrapping_add(h);
                sum = sum.wrapping_add(left.wrapping_add(right));
            }
            self.at = (self.at + stretch) % self.lines.len();
            left -= stretch as u64;
        }
        black_box(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the first `count` lines of endless ones of 8 lines each.
    fn plain(count: u64) -> u64 {
        (0..count).map(|line| 8 * (line % 8) + 28).sum()
    }

    #[test]
    fn each_line_is_added_as_often_as_it_comes() {
        for count in [0, 1, 7, 8, 9, 1000] {
            assert_eq!(Sum::new(8).unwrap().run(count), plain(count), "{count}");
        }
        let mut sum = Sum::new(8).unwrap();
        let parts = [3, 0, 5, 13].map(|count| sum.run(count));
        assert_eq!(parts.iter().sum::<u64>(), plain(21));
    }
}
