//! The workload of the SFS paper's Table I: Azure-like durations as fib(N).
//!
//! Source of the shares: the paper's Table I, quoted from memory (40.6 %, 9.9
//! %, 7.3 %, 22.2 % and 14.5 %; they add up to 94.5 % and are normalised to 100
//! % here), cross-checked against the frequencies of N in the artefact's own
//! list of 10,083 requests, `test1.txt`: 42.94 %, 10.57 %, 7.68 %, 23.46 % and
//! 15.35 %. Normalised, the two agree within 0.1 percentage points in every
//! class. Source of the ranges: the artefact's durations of fib(N), see
//! [`crate::fib`].
//!
//! Within a class durations are uniform over its range. The artefact's list
//! does the same in steps, except in the class of fib(30) and fib(31), where it
//! has seventeen of the shorter per longer one: the mean service time here is
//! 386.1 ms, that of the list 370.2 ms.

use super::random::Random;
use super::Durations;
use crate::fib;

/// One class of functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// Shortest duration in milliseconds.
    pub low_ms: f64,
    /// Longest duration in milliseconds.
    pub high_ms: f64,
    /// Share in per cent of the sum over all classes.
    pub share: f64,
}

/// The classes, from the shortest to the longest.
pub const CLASSES: [Class; 5] = [
    class(13.0, 42.0, 40.6),     // fib 20 to 26
    class(60.0, 90.0, 9.9),      // fib 27 and 28
    class(140.0, 140.0, 7.3),    // fib 29
    class(220.0, 346.0, 22.2),   // fib 30 and 31
    class(1425.0, 2344.0, 14.5), // fib 34 and 35
];

const fn class(low_ms: f64, high_ms: f64, share: f64) -> Class {
    Class {
        low_ms,
        high_ms,
        share,
    }
}

/// Sum of all shares, in per cent.
fn total_share() -> f64 {
    CLASSES.iter().map(|class| class.share).sum()
}

/// The durations of Table I, all multiplied by one factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table1 {
    /// The factor: 1.0 is the paper's, 0.25 a quarter of every duration.
    pub scale: f64,
}

/// The mean duration in milliseconds.
pub fn mean_ms() -> f64 {
    let part = |class: &Class| class.share * (class.low_ms + class.high_ms) / 2.0;
    CLASSES.iter().map(part).sum::<f64>() / total_share()
}

/// Draws a duration in milliseconds.
pub fn sample_ms(random: &mut Random) -> f64 {
    let class = pick(random.unit() * total_share());
    random.uniform(class.low_ms, class.high_ms)
}

impl Durations for Table1 {
    fn mean_us(&self) -> f64 {
        mean_ms() * 1e3 * self.scale
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let ms = sample_ms(random);
        let us = (ms * 1e3 * self.scale).round() as u64;
        // Named after the fib(N) with a similar duration, so that invocations
        // of one function have similar durations.
        (format!("fib{}", fib::nearest(ms)), us.max(1))
    }
}

/// The class at `point` of the cumulative shares.
fn pick(mut point: f64) -> Class {
    for class in CLASSES {
        if point < class.share {
            return class;
        }
        point -= class.share;
    }
    // Rounding may leave a point beyond the end.
    CLASSES[CLASSES.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::super::{generate, Amount};
    use super::*;
    use faas_data::trace::{hex_sha256, offered_load, to_csv, Invocation};

    fn amount(invocations: u32) -> Amount {
        Amount {
            invocations,
            load: 0.8,
            cpus: 4,
            seed: 42,
        }
    }

    /// Shares of the classes in per cent, by service time.
    fn shares(sample: &[Invocation]) -> Vec<f64> {
        let share = |class: &Class| {
            let range = (class.low_ms * 1e3) as u64..=(class.high_ms * 1e3) as u64;
            let inside = sample
                .iter()
                .filter(|one| range.contains(&one.service_us()));
            100.0 * inside.count() as f64 / sample.len() as f64
        };
        CLASSES.iter().map(share).collect()
    }

    #[test]
    fn the_mean_is_the_one_in_the_docs() {
        // (40.6 x 27.5 + 9.9 x 75 + 7.3 x 140 + 22.2 x 283 + 14.5 x 1884.5) / 94.5
        // = (1116.5 + 742.5 + 1022 + 6282.6 + 27325.25) / 94.5 = 386.1 ms
        let mean = Table1 { scale: 1.0 }.mean_us();
        assert!((mean - 36_488_850.0 / 94.5).abs() < 1e-6, "{mean}");
        assert!((Table1 { scale: 0.25 }.mean_us() - mean / 4.0).abs() < 1e-6);
    }

    #[test]
    fn classes_mean_and_rate_are_met() {
        let sample = generate(&Table1 { scale: 1.0 }, amount(100_000));
        let found = shares(&sample);
        assert!(
            (found.iter().sum::<f64>() - 100.0).abs() < 1e-9,
            "{found:?}"
        );
        for (class, share) in CLASSES.iter().zip(&found) {
            let want = 100.0 * class.share / total_share();
            assert!((share - want).abs() < 0.5, "{share} for {want}");
        }
        let service: u64 = sample.iter().map(Invocation::service_us).sum();
        let mean = service as f64 / sample.len() as f64;
        assert!(
            (mean / Table1 { scale: 1.0 }.mean_us() - 1.0).abs() < 0.02,
            "{mean}"
        );
        let load = offered_load(&sample, 4).unwrap();
        assert!((load - 0.8).abs() < 1e-6, "{load}");
    }

    #[test]
    fn functions_are_named_after_their_duration() {
        for one in generate(&Table1 { scale: 1.0 }, amount(1000)) {
            let n: u32 = one.function.strip_prefix("fib").unwrap().parse().unwrap();
            assert!((20..=35).contains(&n) && n != 32 && n != 33, "{n}");
        }
    }

    #[test]
    fn a_seed_determines_every_byte() {
        let text = |seed| {
            let amount = Amount {
                seed,
                ..amount(1000)
            };
            to_csv(&generate(&Table1 { scale: 0.25 }, amount))
        };
        assert_ne!(text(42), text(43));
        // Golden: a change here changes every published workload.
        assert_eq!(hex_sha256(text(42).as_bytes()), GOLDEN);
    }

    const GOLDEN: &str = "c8ae89de90c045133d8657e103d614524fa4b34b2a96addbfd8e9f361d6948a6";
}
