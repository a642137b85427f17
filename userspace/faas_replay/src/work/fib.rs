//! Recursive Fibonacci numbers, the function body of the SFS paper.
//!
//! A demand is filled like the paper's durations: with the largest fib(N) that
//! fits on this machine, at a rate measured at start, and the rest with smaller
//! N. Contention must not make it longer, so the recursion checks the clock
//! between its parts and stops when the time is over.

use super::pace::Check;
use crate::clock::thread_cpu_ns;
use std::hint::black_box;

/// Maximum N: fib(90) takes a lifetime, and its number of calls fits into 64
/// bits.
const LARGEST: u32 = 90;

/// Up to this N the clock is not checked in between: 177 calls, which cost less
/// than a check.
pub const SMALLEST: u32 = 10;

/// The N measured at start: 21,891 calls, some 50 us.
const MEASURED: u32 = 20;

/// Number of calls of fib(N), including itself, by N.
const CALLS: [u64; LARGEST as usize + 1] = {
    let mut calls = [1; LARGEST as usize + 1];
    let mut n = 2;
    while n <= LARGEST as usize {
        calls[n] = 1 + calls[n - 1] + calls[n - 2];
        n += 1;
    }
    calls
};

/// The speed of recursion on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fib {
    /// Nanoseconds per call.
    call_ns: f64,
}

impl Fib {
    /// Measures the rate: the best of three, since the first is cold.
    pub fn measure() -> Self {
        let once = |_| {
            let before = thread_cpu_ns();
            plain(MEASURED);
            thread_cpu_ns() - before
        };
        let best = (0..3).map(once).min().unwrap_or(1);
        Self {
            call_ns: best.max(1) as f64 / CALLS[MEASURED as usize] as f64,
        }
    }

    /// The duration of fib(`n`) in nanoseconds; `n` is at most [`LARGEST`].
    fn cost_ns(self, n: u32) -> u64 {
        (CALLS[n as usize] as f64 * self.call_ns) as u64
    }

    /// The largest N whose fib(N) takes at most `ns`; at least [`SMALLEST`].
    fn fitting(self, ns: u64) -> u32 {
        let fits = |n: &u32| self.cost_ns(*n) <= ns;
        (SMALLEST..=LARGEST).rev().find(fits).unwrap_or(SMALLEST)
    }

    /// Computes Fibonacci numbers until the target that `check` tells; `compute`
    /// computes one without checking the clock.
    pub fn until(self, mut check: impl FnMut() -> Check, compute: impl FnMut(u32) -> u64) {
        let mut watch = Watch {
            fib: self,
            last: check(),
            check,
            compute,
        };
        while watch.last.left_ns() > 0 {
            let n = self.fitting(watch.last.left_ns());
            black_box(watch.recur(n));
        }
    }
}

/// One computation that checks the clock.
struct Watch<C, F> {
    fib: Fib,
    last: Check,
    check: C,
    compute: F,
}

impl<C: FnMut() -> Check, F: FnMut(u32) -> u64> Watch<C, F> {
    /// fib(`n`), in parts that take at most a quarter of the rest; another
    /// number once the time is over.
    fn recur(&mut self, n: u32) -> u64 {
        if self.last.left_ns() == 0 {
            return 0;
        }
        if n <= SMALLEST || self.fib.cost_ns(n) <= self.last.stretch_ns() {
            let value = (self.compute)(n);
            self.last = (self.check)();
            return value;
        }
        self.recur(n - 1) + self.recur(n - 2)
    }
}

/// fib(`n`) by the definition.
pub fn plain(n: u32) -> u64 {
    if black_box(n) < 2 {
        return u64::from(n);
    }
    plain(n - 1) + plain(n - 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::pace::LONGEST_NS;
    use std::cell::Cell;

    #[test]
    fn numbers_and_calls_are_correct() {
        let known = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55];
        for (n, value) in known.into_iter().enumerate() {
            assert_eq!(plain(n as u32), value);
        }
        // fib(n) makes 2 fib(n + 1) - 1 calls.
        for n in 0..20 {
            assert_eq!(CALLS[n as usize], 2 * plain(n + 1) - 1);
        }
    }

    fn at(now_ns: u64, target_ns: u64) -> Check {
        Check {
            now_ns,
            target_ns,
            longest_ns: LONGEST_NS,
        }
    }

    #[test]
    fn computing_in_parts_gives_the_same_number() {
        let mut watch = Watch {
            fib: Fib { call_ns: 100.0 },
            last: at(0, u64::MAX),
            check: || at(0, u64::MAX),
            compute: plain,
        };
        assert_eq!(watch.recur(25), plain(25));
    }

    /// Fills `target_ns` on a simulated clock on which a call takes `real_ns`
    /// although 2 ns were measured; returns the overshoot and the parts
    /// computed.
    fn fill(target_ns: u64, real_ns: u64) -> (u64, Vec<u32>) {
        let now = Cell::new(0);
        let mut parts = Vec::new();
        let fib = Fib { call_ns: 2.0 };
        fib.until(
            || at(now.get(), target_ns),
            |n| {
                parts.push(n);
                now.set(now.get() + CALLS[n as usize] * real_ns);
                0
            },
        );
        (now.get() - target_ns, parts)
    }

    #[test]
    fn the_overshoot_is_one_smallest_part_even_on_a_slower_machine() {
        for target_ns in [1, 1_000, 400_000, 3_250_000, 60_000_000] {
            for real_ns in [1, 2, 8] {
                let (overshoot, parts) = fill(target_ns, real_ns);
                let smallest = CALLS[SMALLEST as usize] * real_ns;
                assert!(overshoot <= smallest, "{target_ns} {real_ns}: {overshoot}");
                let longest = parts.iter().max().unwrap();
                assert!(CALLS[*longest as usize] * 2 <= LONGEST_NS);
            }
        }
    }

    #[test]
    fn the_largest_number_that_fits_is_used() {
        let fib = Fib { call_ns: 2.0 };
        // fib(20) makes 21,891 calls, fib(21) 35,421.
        assert_eq!(fib.fitting(43_782), 20);
        assert_eq!(fib.fitting(43_781), 19);
        assert_eq!(fib.fitting(0), SMALLEST);
        assert!(Fib::measure().call_ns > 0.0);
    }
}
