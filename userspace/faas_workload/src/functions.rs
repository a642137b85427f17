//! Functions: the choice of function for an invocation, and its duration.

use super::distribution::Distribution;
use super::random::Random;
use super::{service_us, Durations};

/// Variation within one function: about that of Azure's. The coefficient of
/// variation of the functions of the 2019 trace, drawn from their percentiles
/// as in the converter, has a median of 0.91 (a sample of 500).
pub const WITHIN_CV: f64 = 1.0;

/// Maximum number of functions of a workload.
pub const MAX_FUNCTIONS: u32 = 100_000;

/// How invocations are spread over functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Popularity {
    /// The k-th most popular function has a share proportional to k^-s.
    Zipf(f64),
    /// The first function has 90 %, the others share the rest evenly.
    Skewed,
    /// All have the same share.
    Uniform,
}

impl Popularity {
    /// The weight of the function of this rank (from 0), of `count` functions.
    pub(crate) fn weight(self, rank: u32, count: u32) -> f64 {
        match self {
            Self::Zipf(exponent) => libm::pow(f64::from(rank + 1), -exponent),
            Self::Skewed if rank == 0 => 0.9,
            Self::Skewed => 0.1 / f64::from(count - 1),
            Self::Uniform => 1.0,
        }
    }
}

/// A set of functions, the most popular first. Each has a typical duration,
/// drawn once from a distribution, around which its invocations vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Functions {
    names: Vec<String>,
    /// Mean service time of each in microseconds.
    typical_us: Vec<f64>,
    /// The cumulative shares.
    ends: Vec<f64>,
    within_cv: f64,
}

impl Functions {
    /// Draws the typical durations of `count` functions (1 to
    /// [`MAX_FUNCTIONS`]) from `distribution`, multiplied by `scale`.
    /// Invocations vary with the coefficient of variation `within_cv` (0 or
    /// more; log-normal).
    pub fn new(
        count: u32,
        popularity: Popularity,
        distribution: &Distribution,
        scale: f64,
        within_cv: f64,
        mut random: Random,
    ) -> Self {
        let width = count.to_string().len();
        let mut end = 0.0;
        let ends = (0..count).map(|rank| {
            end += popularity.weight(rank, count);
            end
        });
        Self {
            ends: ends.collect(),
            names: (1..=count).map(|n| format!("f{n:0width$}")).collect(),
            typical_us: (0..count)
                .map(|_| distribution.sample(&mut random) * scale)
                .collect(),
            within_cv,
        }
    }

    fn total(&self) -> f64 {
        self.ends[self.ends.len() - 1]
    }
}

impl Durations for Functions {
    fn mean_us(&self) -> f64 {
        let mut start = 0.0;
        let mut sum = 0.0;
        for (end, typical) in self.ends.iter().zip(&self.typical_us) {
            sum += (end - start) * typical;
            start = *end;
        }
        sum / self.total()
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let point = random.unit() * self.total();
        let found = self.ends.partition_point(|end| *end <= point);
        // Rounding may leave a point beyond the end.
        let index = found.min(self.ends.len() - 1);
        let us = self.typical_us[index] * random.noise(self.within_cv);
        (self.names[index].clone(), service_us(us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(count: u32, popularity: Popularity, within_cv: f64) -> Functions {
        let uniform = Distribution::Uniform {
            low_us: 1e4,
            high_us: 3e4,
        };
        let random = Random::stream(1, 1);
        Functions::new(count, popularity, &uniform, 1.0, within_cv, random)
    }

    /// Share of each function in 100,000 invocations.
    fn shares(functions: &Functions) -> Vec<f64> {
        let mut random = Random::new(2);
        let mut counts = vec![0.0; functions.names.len()];
        for _ in 0..100_000 {
            let (name, _) = functions.draw(&mut random);
            counts[name[1..].parse::<usize>().unwrap() - 1] += 1e-5;
        }
        counts
    }

    #[test]
    fn shares_follow_the_popularity() {
        // Zipf with s = 1 over 4: 1 + 1/2 + 1/3 + 1/4 = 25/12
        let cases = [
            (Popularity::Zipf(1.0), [0.48, 0.24, 0.16, 0.12]),
            (Popularity::Skewed, [0.9, 0.1 / 3.0, 0.1 / 3.0, 0.1 / 3.0]),
            (Popularity::Uniform, [0.25; 4]),
        ];
        for (popularity, want) in cases {
            let found = shares(&functions(4, popularity, 0.0));
            for (share, want) in found.iter().zip(want) {
                // Three standard errors: 3 x sqrt(0.25 / 100,000) = 0.0047
                assert!((share - want).abs() < 0.0047, "{popularity:?} {found:?}");
            }
        }
    }

    #[test]
    fn a_function_varies_around_its_own_duration() {
        let fixed = functions(7, Popularity::Uniform, 0.0);
        let mut random = Random::new(4);
        for _ in 0..100 {
            let (name, us) = fixed.draw(&mut random);
            let index = name[1..].parse::<usize>().unwrap() - 1;
            assert_eq!(us, fixed.typical_us[index].round() as u64);
        }
        let one = functions(1, Popularity::Zipf(1.0), 0.5);
        let all: Vec<f64> = (0..100_000)
            .map(|_| one.draw(&mut random).1 as f64)
            .collect();
        let mean = all.iter().sum::<f64>() / 1e5;
        let variance = all.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean / one.mean_us() - 1.0).abs() < 0.005, "{mean}");
        assert!((variance.sqrt() / mean - 0.5).abs() < 0.015, "{variance}");
    }

    #[test]
    fn names_sort_by_popularity() {
        let names = functions(10, Popularity::Skewed, 0.0).names;
        assert_eq!((&*names[0], &*names[9]), ("f01", "f10"));
        assert_eq!(functions(1, Popularity::Uniform, 0.0).names, ["f1"]);
    }
}
