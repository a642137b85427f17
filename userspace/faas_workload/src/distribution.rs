//! Distributions of durations.
//!
//! Table I has nothing between 346 and 1550 ms (`table1-artefact`: 1425). SFS's
//! slice lands in this gap (S = mean IAT x CPUs = mean service time / load = 414
//! or 386 ms at load 1.0), so
//! hardly any invocation is demoted shortly before its end. The other
//! distributions have no such gap, except [`Distribution::Bimodal`], which is
//! one large gap.

use super::random::Random;
use super::table1::Version;
use super::{service_us, Durations};
use anyhow::{bail, Result};

/// Minimum share of a log-normal distribution within its limits: samples
/// outside are redrawn, which must end.
const MIN_INSIDE: f64 = 1e-3;

/// A distribution of durations; all parameters are in microseconds unless
/// noted.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// The SFS paper's Table I, see [`super::table1`].
    Table1(Version),
    /// Log-normal, see [`Lognormal`].
    Lognormal(Lognormal),
    /// Exponential with this mean (more than 0).
    Exponential {
        /// The mean.
        mean_us: f64,
    },
    /// Uniform from `low_us` to `high_us` (0 < low <= high).
    Uniform {
        /// The shortest.
        low_us: f64,
        /// The longest.
        high_us: f64,
    },
    /// Short and long ones, each uniform around their mean.
    Bimodal {
        /// Mean of the short ones.
        short_us: f64,
        /// Mean of the long ones.
        long_us: f64,
        /// Share of the long ones, 0 to 1.
        long_share: f64,
        /// Half the width of both, as a share of their mean, 0 to 1.
        spread: f64,
    },
    /// One of these durations, at least one, with equal probability.
    Empirical(Vec<f64>),
}

impl Distribution {
    /// The mean in microseconds, computed, not sampled.
    pub fn mean_us(&self) -> f64 {
        match self {
            Self::Table1(version) => version.mean_ms() * 1e3,
            Self::Lognormal(lognormal) => lognormal.mean_us(),
            Self::Exponential { mean_us } => *mean_us,
            Self::Uniform { low_us, high_us } => (low_us + high_us) / 2.0,
            Self::Bimodal {
                short_us,
                long_us,
                long_share,
                ..
            } => short_us + (long_us - short_us) * long_share,
            Self::Empirical(all) => all.iter().sum::<f64>() / all.len() as f64,
        }
    }

    /// Draws a duration in microseconds.
    pub fn sample(&self, random: &mut Random) -> f64 {
        match self {
            Self::Table1(version) => version.sample_ms(random) * 1e3,
            Self::Lognormal(lognormal) => lognormal.sample(random),
            Self::Exponential { mean_us } => random.exponential(*mean_us),
            Self::Uniform { low_us, high_us } => random.uniform(*low_us, *high_us),
            Self::Bimodal {
                short_us,
                long_us,
                long_share,
                spread,
            } => {
                let long = random.unit() < *long_share;
                let mean = if long { long_us } else { short_us };
                random.uniform(mean * (1.0 - spread), mean * (1.0 + spread))
            }
            Self::Empirical(all) => all[random.below(all.len())],
        }
    }
}

/// A log-normal distribution, truncated at both ends: samples outside are
/// redrawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lognormal {
    mu: f64,
    sigma: f64,
    min_us: f64,
    max_us: f64,
}

impl Lognormal {
    /// Mean of the logarithm of Azure's durations in seconds: the fit of Hermes
    /// (Kaffes et al., arXiv 2111.07226) to the Azure Functions 2019 trace.
    pub const MU: f64 = -0.38;
    /// Standard deviation of that logarithm, of the same fit.
    pub const SIGMA: f64 = 2.36;

    /// `mu` and `sigma` (more than 0) are mean and standard deviation of the
    /// logarithm of the duration in seconds; durations shorter than `min_us`
    /// or longer than `max_us` microseconds (0 and infinity: no limit) are cut off.
    ///
    /// # Errors
    /// If less than a thousandth of the distribution is within the limits.
    pub fn new(mu: f64, sigma: f64, min_us: f64, max_us: f64) -> Result<Self> {
        let new = Self {
            mu,
            sigma,
            min_us,
            max_us,
        };
        // Written so that NaN fails, too.
        if sigma > 0.0 && new.inside() >= MIN_INSIDE {
            return Ok(new);
        }
        bail!("less than a thousandth of the log-normal distribution is from {min_us} to {max_us} microseconds")
    }

    /// Number of standard deviations of `us` above the mean, in logarithms.
    fn deviations(&self, us: f64) -> f64 {
        (libm::log(us / 1e6) - self.mu) / self.sigma
    }

    /// Share of the distribution within the limits.
    fn inside(&self) -> f64 {
        below(self.deviations(self.max_us)) - below(self.deviations(self.min_us))
    }

    /// Mean of the distribution within the limits.
    fn mean_us(&self) -> f64 {
        let whole = libm::exp(self.mu + self.sigma * self.sigma / 2.0) * 1e6;
        // Weighted by the durations, a log-normal distribution stays
        // log-normal, with its logarithm shifted up by sigma squared.
        let high = below(self.deviations(self.max_us) - self.sigma);
        let low = below(self.deviations(self.min_us) - self.sigma);
        whole * (high - low) / self.inside()
    }

    fn sample(&self, random: &mut Random) -> f64 {
        loop {
            let us = libm::exp(self.mu + self.sigma * random.normal()) * 1e6;
            if (self.min_us..=self.max_us).contains(&us) {
                return us;
            }
        }
    }
}

/// Share of the standard normal distribution below `x`.
fn below(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

/// Durations in which each class of duration is a function.
#[derive(Debug, Clone, PartialEq)]
pub struct ByDuration {
    /// The distribution.
    pub distribution: Distribution,
    /// Factor on all of them.
    pub scale: f64,
}

impl Durations for ByDuration {
    fn mean_us(&self) -> f64 {
        self.distribution.mean_us() * self.scale
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let us = self.distribution.sample(random);
        (class_name(us), service_us(us * self.scale))
    }
}

/// The name of a duration's class: the largest of 1, 2 and 5 times a power of
/// ten that it reaches, such as `20ms`. Invocations of one such function have
/// similar durations.
pub fn class_name(us: f64) -> String {
    let mut start = 1.0;
    let steps = [2.0, 2.5, 2.0];
    for step in steps.iter().cycle() {
        if us < start * step || start >= 1e12 {
            break;
        }
        start *= step;
    }
    match start {
        s if s >= 1e6 => format!("{}s", s / 1e6),
        ms if ms >= 1e3 => format!("{}ms", ms / 1e3),
        us => format!("{us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of 100,000 samples.
    fn moments(distribution: &Distribution) -> (f64, f64) {
        let mut random = Random::new(5);
        let all: Vec<f64> = (0..100_000)
            .map(|_| distribution.sample(&mut random))
            .collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let square = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (mean, (square / all.len() as f64).sqrt())
    }

    /// Checks computed and sampled mean against `mean`, and sampled deviation
    /// against `deviation`, to 1.5 %: for a deviation as large as the mean,
    /// more than four standard errors of 100,000 samples.
    fn check(distribution: &Distribution, mean: f64, deviation: f64) {
        let computed = distribution.mean_us();
        assert!(
            (computed / mean - 1.0).abs() < 1e-4,
            "{computed} for {mean}"
        );
        let (found, spread) = moments(distribution);
        assert!((found / mean - 1.0).abs() < 0.015, "{found} for {mean}");
        assert!(
            (spread / deviation - 1.0).abs() < 0.015,
            "{spread} for {deviation}"
        );
    }

    #[test]
    fn means_and_deviations_agree_with_formulas() {
        check(&Distribution::Exponential { mean_us: 386e3 }, 386e3, 386e3);
        // (771 - 1) / sqrt(12) = 222.28
        let uniform = Distribution::Uniform {
            low_us: 1e3,
            high_us: 771e3,
        };
        check(&uniform, 386e3, 222.28e3);
        // 0.83 x 50 + 0.17 x 2000 = 381.5; the variance is 0.83 x 0.17 x 1950^2
        // + 0.1^2 / 3 x (0.83 x 50^2 + 0.17 x 2000^2) = 536,533 + 2274
        let bimodal = Distribution::Bimodal {
            short_us: 50e3,
            long_us: 2000e3,
            long_share: 0.17,
            spread: 0.1,
        };
        check(&bimodal, 381.5e3, 538_807f64.sqrt() * 1e3);
        // 1, 2 and 6: mean 3, variance (4 + 1 + 9) / 3
        let empirical = Distribution::Empirical(vec![1.0, 2.0, 6.0]);
        check(&empirical, 3.0, (14.0f64 / 3.0).sqrt());
        // As in `table1.rs`; of the first, sampled as well: the variance is that
        // of 14 durations with their shares.
        let mean = Distribution::Table1(Version::Artefact).mean_us();
        assert!((mean - 36_488_850.0 / 94.5).abs() < 1e-6, "{mean}");
        check(
            &Distribution::Table1(Version::Text),
            39_578_000.0 / 95.6,
            706.571e3,
        );
    }

    #[test]
    fn lognormal_has_its_logarithms_moments() {
        // exp(mu + sigma^2 / 2) = exp(-0.38 + 2.7848) = exp(2.4048) s
        let azure = Lognormal::new(Lognormal::MU, Lognormal::SIGMA, 0.0, f64::INFINITY).unwrap();
        let mean = Distribution::Lognormal(azure).mean_us();
        assert!((mean / 11.0762e6 - 1.0).abs() < 1e-4, "{mean}");
        let mut random = Random::new(9);
        let logs: Vec<f64> = (0..100_000)
            .map(|_| libm::log(azure.sample(&mut random) / 1e6))
            .collect();
        let mean = logs.iter().sum::<f64>() / 1e5;
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        // Three standard errors: 3 x 2.36 / sqrt(100,000) = 0.022
        assert!((mean + 0.38).abs() < 0.022, "{mean}");
        assert!((variance.sqrt() - 2.36).abs() < 0.02, "{variance}");
    }

    #[test]
    fn limits_cut_the_lognormal_off() {
        // From 1 ms to 10 s: its logarithm from -2.766 to 1.137 deviations.
        let cut = Lognormal::new(-0.38, 2.36, 1e3, 10e6).unwrap();
        let mut random = Random::new(9);
        let all: Vec<f64> = (0..100_000).map(|_| cut.sample(&mut random)).collect();
        assert!(all.iter().all(|us| (1e3..=10e6).contains(us)));
        let mean = all.iter().sum::<f64>() / 1e5;
        assert!(
            (mean / cut.mean_us() - 1.0).abs() < 0.015,
            "{mean} {}",
            cut.mean_us()
        );
        assert!(Lognormal::new(-0.38, 2.36, 5.0, 4.0).is_err());
        assert!(Lognormal::new(-0.38, 2.36, 0.0, 1e-9).is_err());
        assert!(Lognormal::new(-0.38, 0.0, 0.0, 1e9).is_err());
        assert!(Lognormal::new(f64::NAN, 1.0, 0.0, 1e9).is_err());
    }

    #[test]
    fn classes_are_named_after_their_shortest_duration() {
        let cases = [
            (0.2, "1us"),
            (1.9, "1us"),
            (2.0, "2us"),
            (999.0, "500us"),
            (1000.0, "1ms"),
            (49_999.0, "20ms"),
            (386_000.0, "200ms"),
            (7.5e6, "5s"),
            (1e300, "1000000s"),
        ];
        for (us, name) in cases {
            assert_eq!(class_name(us), name);
        }
    }
}
