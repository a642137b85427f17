//! The workload of the SFS paper's Table I: Azure-like durations as fib(N).
//!
//! [`Version::Text`] is the table as the paper prints it (SC'22, Section VII):
//! shares of 40.6, 9.8, 6.8, 22.7 and 15.7 % for the ranges 0 to 50, 50 to 100,
//! 100 to 200 and 200 to 400 ms and from 1550 ms on. The ranges between them,
//! with less than 1 % each, are left out there, so the shares add up to 95.6 %;
//! here they are normalised to 100 %. The paper's generator draws a range and
//! makes a fib(N) with an N of that range. Here each N of a range is equally
//! likely, and takes the time of the artefact's list ([`crate::fib`]). One of
//! its times is outside of the table's range: fib(34), with 1425 ms. It takes
//! the range's 1550 ms instead. 83.6 % of the invocations take 346 ms or less,
//! which is the paper's split into 83 % and 17 %.
//!
//! [`Version::Artefact`] is what this project used before it had the text:
//! shares of 40.6, 9.9, 7.3, 22.2 and 14.5 %, which are the frequencies in the
//! artefact's own list of 10,083 requests within 0.1 percentage points
//! (normalised), and durations that are uniform from the shortest to the
//! longest fib(N) of a range. Figures that were measured with it name it
//! `table1-artefact`.

use super::random::Random;
use super::Durations;
use crate::fib;
use std::ops::RangeInclusive;

/// One class of functions.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Lower bound of the durations in milliseconds.
    pub low_ms: f64,
    /// Upper bound of the durations in milliseconds; may be infinite.
    pub high_ms: f64,
    /// Share in per cent of the sum over all classes.
    pub share: f64,
    /// The N of its fib(N).
    pub ns: RangeInclusive<u32>,
}

/// The classes as the paper prints them, from the shortest to the longest.
pub const TEXT: [Class; 5] = [
    class(0.0, 50.0, 40.6, 20..=26),
    class(50.0, 100.0, 9.8, 27..=28),
    class(100.0, 200.0, 6.8, 29..=29),
    class(200.0, 400.0, 22.7, 30..=31),
    class(1550.0, f64::INFINITY, 15.7, 34..=35),
];

/// The classes of `table1-artefact`, from the shortest to the longest.
pub const ARTEFACT: [Class; 5] = [
    class(13.0, 42.0, 40.6, 20..=26),
    class(60.0, 90.0, 9.9, 27..=28),
    class(140.0, 140.0, 7.3, 29..=29),
    class(220.0, 346.0, 22.2, 30..=31),
    class(1425.0, 2344.0, 14.5, 34..=35),
];

const fn class(low_ms: f64, high_ms: f64, share: f64, ns: RangeInclusive<u32>) -> Class {
    Class {
        low_ms,
        high_ms,
        share,
        ns,
    }
}

impl Class {
    /// The duration of fib(`n`) in milliseconds, or the lower bound if that is
    /// more; 0 for an N that is not in the artefact's list.
    fn duration_ms(&self, n: u32) -> f64 {
        let listed = fib::duration_ms(n).unwrap_or(0);
        (listed as f64).max(self.low_ms)
    }
}

/// Which Table I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// As the paper prints it: `table1`.
    Text,
    /// By the artefact's list: `table1-artefact`.
    Artefact,
}

impl Version {
    /// The classes, from the shortest to the longest.
    pub fn classes(self) -> &'static [Class; 5] {
        match self {
            Self::Text => &TEXT,
            Self::Artefact => &ARTEFACT,
        }
    }

    /// Sum of all shares, in per cent.
    fn total_share(self) -> f64 {
        self.classes().iter().map(|class| class.share).sum()
    }

    /// The mean duration in milliseconds.
    pub fn mean_ms(self) -> f64 {
        let mean = |class: &Class| match self {
            Self::Text => {
                let sum: f64 = class.ns.clone().map(|n| class.duration_ms(n)).sum();
                sum / class.ns.clone().count() as f64
            }
            Self::Artefact => (class.low_ms + class.high_ms) / 2.0,
        };
        let part = |class: &Class| class.share * mean(class);
        self.classes().iter().map(part).sum::<f64>() / self.total_share()
    }

    /// Draws a duration in milliseconds.
    pub fn sample_ms(self, random: &mut Random) -> f64 {
        self.sample(random).1
    }

    /// Draws N and the duration in milliseconds.
    fn sample(self, random: &mut Random) -> (u32, f64) {
        let class = self.pick(random.unit() * self.total_share());
        match self {
            Self::Text => {
                let n = class.ns.start() + random.below(class.ns.clone().count()) as u32;
                (n, class.duration_ms(n))
            }
            Self::Artefact => {
                let ms = random.uniform(class.low_ms, class.high_ms);
                (fib::nearest(ms), ms)
            }
        }
    }

    /// The class at `point` of the cumulative shares.
    fn pick(self, mut point: f64) -> &'static Class {
        let classes = self.classes();
        for class in classes {
            if point < class.share {
                return class;
            }
            point -= class.share;
        }
        // Rounding may leave a point beyond the end.
        &classes[classes.len() - 1]
    }
}

/// The durations of Table I, all multiplied by one factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table1 {
    /// Which one.
    pub version: Version,
    /// The factor: 1.0 is the paper's, 0.25 a quarter of every duration.
    pub scale: f64,
}

impl Durations for Table1 {
    fn mean_us(&self) -> f64 {
        self.version.mean_ms() * 1e3 * self.scale
    }

    /// Invocations are named after the fib(N) with that duration, or, in
    /// `table1-artefact`, with a similar one.
    fn draw(&self, random: &mut Random) -> (String, u64) {
        let (n, ms) = self.version.sample(random);
        let us = (ms * 1e3 * self.scale).round() as u64;
        (format!("fib{n}"), us.max(1))
    }
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

    fn table1(version: Version, scale: f64) -> Table1 {
        Table1 { version, scale }
    }

    /// Shares of the classes in per cent, by service time.
    fn shares(version: Version, sample: &[Invocation]) -> Vec<f64> {
        let share = |class: &Class| {
            let range = class.low_ms..=class.high_ms;
            let inside = sample
                .iter()
                .filter(|one| range.contains(&(one.service_us() as f64 / 1e3)));
            100.0 * inside.count() as f64 / sample.len() as f64
        };
        version.classes().iter().map(share).collect()
    }

    /// Table I of the paper, cell by cell.
    #[test]
    fn the_table_is_that_of_the_text() {
        let printed = [
            ("40.6%", "0-50", "20-26"),
            ("9.8%", "50-100", "27-28"),
            ("6.8%", "100-200", "29-29"),
            ("22.7%", "200-400", "30-31"),
            ("15.7%", "1550-inf", "34-35"),
        ];
        let cells = |class: &Class| {
            let (first, last) = (class.ns.start(), class.ns.end());
            let range = format!("{}-{}", class.low_ms, class.high_ms);
            (
                format!("{}%", class.share),
                range,
                format!("{first}-{last}"),
            )
        };
        for (class, (share, range, ns)) in TEXT.iter().zip(printed) {
            assert_eq!(cells(class), (share.into(), range.into(), ns.into()));
            for n in class.ns.clone() {
                let ms = class.duration_ms(n);
                assert!(class.low_ms <= ms && ms < class.high_ms, "fib({n}): {ms}");
            }
        }
        // "fib with an N between 20-26 finishes execution in less than 45 ms"
        assert!((20..=26).all(|n| TEXT[0].duration_ms(n) < 45.0));
        // 79.9 of 95.6 are shorter than 400 ms: the paper's 83 %.
        let short: f64 = TEXT[..4].iter().map(|class| class.share).sum();
        assert!((short / Version::Text.total_share() - 0.8358).abs() < 1e-4);
    }

    #[test]
    fn the_means_are_the_ones_in_the_docs() {
        // (40.6 x 155 / 7 + 9.8 x 75 + 6.8 x 140 + 22.7 x 283 + 15.7 x 1947) / 95.6
        // = (899 + 735 + 952 + 6424.1 + 30567.9) / 95.6 = 414.0 ms
        let mean = table1(Version::Text, 1.0).mean_us();
        assert!((mean - 39_578_000.0 / 95.6).abs() < 1e-6, "{mean}");
        // (40.6 x 27.5 + 9.9 x 75 + 7.3 x 140 + 22.2 x 283 + 14.5 x 1884.5) / 94.5
        // = (1116.5 + 742.5 + 1022 + 6282.6 + 27325.25) / 94.5 = 386.1 ms
        let mean = table1(Version::Artefact, 1.0).mean_us();
        assert!((mean - 36_488_850.0 / 94.5).abs() < 1e-6, "{mean}");
        assert!((table1(Version::Artefact, 0.25).mean_us() - mean / 4.0).abs() < 1e-6);
    }

    #[test]
    fn classes_mean_and_rate_are_met() {
        for version in [Version::Text, Version::Artefact] {
            let sample = generate(&table1(version, 1.0), amount(100_000));
            let found = shares(version, &sample);
            assert!(
                (found.iter().sum::<f64>() - 100.0).abs() < 1e-9,
                "{found:?}"
            );
            for (class, share) in version.classes().iter().zip(&found) {
                let want = 100.0 * class.share / version.total_share();
                assert!((share - want).abs() < 0.5, "{share} for {want}");
            }
            let service: u64 = sample.iter().map(Invocation::service_us).sum();
            let mean = service as f64 / sample.len() as f64;
            let want = table1(version, 1.0).mean_us();
            assert!((mean / want - 1.0).abs() < 0.02, "{mean}");
            let load = offered_load(&sample, 4).unwrap();
            assert!((load - 0.8).abs() < 1e-6, "{load}");
        }
    }

    #[test]
    fn functions_are_named_after_their_duration() {
        for version in [Version::Text, Version::Artefact] {
            for one in generate(&table1(version, 1.0), amount(1000)) {
                let n: u32 = one.function.strip_prefix("fib").unwrap().parse().unwrap();
                assert!((20..=35).contains(&n) && n != 32 && n != 33, "{n}");
                if version == Version::Text && n < 34 {
                    assert_eq!(fib::duration_ms(n), Some(one.service_us() / 1000));
                }
            }
        }
    }

    #[test]
    fn a_seed_determines_every_byte() {
        let text = |version, seed| {
            let amount = Amount {
                seed,
                ..amount(1000)
            };
            to_csv(&generate(&table1(version, 0.25), amount))
        };
        assert_ne!(text(Version::Text, 42), text(Version::Text, 43));
        // Golden: a change here changes every published workload.
        let hash = |version| hex_sha256(text(version, 42).as_bytes());
        assert_eq!(hash(Version::Text), GOLDEN);
        assert_eq!(hash(Version::Artefact), GOLDEN_ARTEFACT);
    }

    const GOLDEN: &str = "6dc1a1d35a5e6b98da0bcd537b355b50001487b7e90335cf6415e1ced21c0b6f";
    const GOLDEN_ARTEFACT: &str =
        "c8ae89de90c045133d8657e103d614524fa4b34b2a96addbfd8e9f361d6948a6";
}
