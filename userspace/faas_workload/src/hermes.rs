//! The five workloads of Hermes (Kaffes et al., arXiv 2111.07226, Section 6.1).
//!
//! In all of them an invocation's time does not depend on its function: it is
//! drawn from one distribution, "capturing variability in running times even
//! within a function". [`crate::functions`] has the opposite, functions with
//! typical times.
//!
//! The text gives 8.9 s as the mean of the log-normal distribution; its
//! parameters give exp(mu + sigma^2 / 2) = 11.1 s. Both are used as printed.

use super::distribution::{Distribution, Lognormal};
use super::functions::Popularity;
use super::random::Random;
use super::{service_us, Durations};
use anyhow::Result;

/// Functions, unless there is a single one.
pub const FUNCTIONS: u32 = 50;

/// Mean of the exponential times, in microseconds.
pub const HOMOGENEOUS_MEAN_US: f64 = 8.9e6;

/// One of the five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// One popular and 49 other functions of Azure's trace, with its arrivals
    MsTrace,
    /// 50 functions, one with 90 % of the load; Poisson arrivals
    MsRepresentative,
    /// One function
    SingleFunction,
    /// 50 functions with the same load
    MultipleFunctionsBalanced,
    /// As ms-trace, with exponential times of mean 8.9 s
    HomogeneousExecutionTimes,
}

impl Mix {
    /// Whether arrivals and functions come from Azure's file of invocations.
    pub fn needs_trace(self) -> bool {
        matches!(self, Self::MsTrace | Self::HomogeneousExecutionTimes)
    }

    /// How many functions there are, and how invocations are spread over them.
    /// With a trace its functions replace them.
    fn functions(self) -> (u32, Popularity) {
        match self {
            Self::SingleFunction => (1, Popularity::Uniform),
            Self::MultipleFunctionsBalanced => (FUNCTIONS, Popularity::Uniform),
            Self::MsTrace | Self::MsRepresentative | Self::HomogeneousExecutionTimes => {
                (FUNCTIONS, Popularity::Skewed)
            }
        }
    }

    /// The execution times of all invocations.
    ///
    /// # Errors
    /// If the limit in microseconds, `max_us`, leaves less than a thousandth
    /// of the distribution.
    fn times(self, max_us: f64) -> Result<Distribution> {
        Ok(match self {
            Self::HomogeneousExecutionTimes => Distribution::Exponential {
                mean_us: HOMOGENEOUS_MEAN_US,
            },
            _ => Distribution::Lognormal(Lognormal::new(
                Lognormal::MU,
                Lognormal::SIGMA,
                0.0,
                max_us,
            )?),
        })
    }
}

/// The durations of one of the five workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Hermes {
    times: Distribution,
    scale: f64,
    /// The cumulative shares of the functions.
    ends: Vec<f64>,
}

/// The name of the function with this index, from 0: the most popular is first.
pub fn name(index: usize) -> String {
    format!("f{:02}", index + 1)
}

impl Hermes {
    /// The workload `mix` with all times multiplied by `scale`. Log-normal
    /// times above `max_us` microseconds (infinity: no limit, as in the text)
    /// are drawn again.
    ///
    /// # Errors
    /// If that limit leaves less than a thousandth of the distribution.
    pub fn new(mix: Mix, scale: f64, max_us: f64) -> Result<Self> {
        let (count, popularity) = mix.functions();
        let mut end = 0.0;
        let ends = (0..count).map(|rank| {
            end += popularity.weight(rank, count);
            end
        });
        Ok(Self {
            ends: ends.collect(),
            times: mix.times(max_us)?,
            scale,
        })
    }
}

impl Durations for Hermes {
    fn mean_us(&self) -> f64 {
        self.times.mean_us() * self.scale
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let point = random.unit() * self.ends[self.ends.len() - 1];
        let found = self.ends.partition_point(|end| *end <= point);
        // Rounding may leave a point beyond the end.
        let index = found.min(self.ends.len() - 1);
        (
            name(index),
            service_us(self.times.sample(random) * self.scale),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Number of invocations and times in seconds of each function, of 100,000.
    fn drawn(mix: Mix) -> BTreeMap<String, Vec<f64>> {
        let hermes = Hermes::new(mix, 1.0, f64::INFINITY).unwrap();
        let mut random = Random::new(8);
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..100_000 {
            let (function, us) = hermes.draw(&mut random);
            all.entry(function).or_default().push(us as f64 / 1e6);
        }
        all
    }

    fn median(mut all: Vec<f64>) -> f64 {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }

    #[test]
    fn functions_have_the_shares_of_the_text() {
        let cases = [
            (Mix::MsRepresentative, 50, 0.9),
            (Mix::SingleFunction, 1, 1.0),
            (Mix::MultipleFunctionsBalanced, 50, 0.02),
        ];
        for (mix, count, first) in cases {
            let all = drawn(mix);
            assert_eq!(all.len(), count, "{mix:?}");
            let share = all["f01"].len() as f64 / 1e5;
            // Three standard errors: 3 x sqrt(0.09 / 100,000) = 0.0028
            assert!((share - first).abs() < 0.0028, "{mix:?}: {share}");
        }
    }

    #[test]
    fn every_function_has_the_same_log_normal_times() {
        for (function, times) in drawn(Mix::MultipleFunctionsBalanced) {
            let count = times.len() as f64;
            let logs: Vec<f64> = times.iter().map(|s| s.ln()).collect();
            let mean = logs.iter().sum::<f64>() / count;
            // Four standard errors of about 2000: 4 x 2.36 / sqrt(2000) = 0.21
            assert!((mean + 0.38).abs() < 0.22, "{function}: {mean}");
        }
    }

    #[test]
    fn times_have_the_quantiles_of_the_text() {
        let all: Vec<f64> = drawn(Mix::SingleFunction).remove("f01").unwrap();
        // "The median execution time is only 600 milliseconds while the 99%
        // execution time is more than 140 seconds": exp(-0.38) = 0.684 s, and
        // exp(-0.38 + 2.326 x 2.36) = 166 s.
        let middle = median(all.clone());
        assert!((0.6..0.72).contains(&middle), "{middle}");
        let above = all.iter().filter(|s| **s > 140.0).count() as f64 / 1e5;
        assert!((0.009..0.014).contains(&above), "{above}");
        let even = Hermes::new(Mix::HomogeneousExecutionTimes, 0.5, 1.0).unwrap();
        assert_eq!(even.mean_us(), 4.45e6);
        let limited = Hermes::new(Mix::SingleFunction, 1.0, 10e6).unwrap();
        assert!(limited.mean_us() < 2e6, "{}", limited.mean_us());
        assert!(Hermes::new(Mix::MsTrace, 1.0, 1e-9).is_err());
    }
}
