//! What several seeds say about one ratio.
//!
//! The observations are the ratios of the seeds. Their logarithms are taken to be normal and
//! independent, so that their mean has an interval by Student's t (one-sample t interval);
//! its exponential is the geometric mean of the ratios, the one mean of ratios that does not
//! depend on which of the two is the base (Fleming and Wallace, "How not to lie with
//! statistics", CACM 29(3), 1986). The null hypothesis is a ratio of 1.

use crate::student;

/// The probability of the interval's complement, and the error rate of all rows together.
pub const LEVEL: f64 = 0.05;

/// The ratio in one seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The seed.
    pub seed: u64,
    /// The ratio, above 0.
    pub ratio: f64,
}

/// What the seeds say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Number of seeds.
    pub seeds: usize,
    /// The geometric mean.
    pub ratio: f64,
    /// The interval and the test; `None` for one seed, and for several with the very same
    /// ratio other than 1, which have no spread to tell by.
    pub test: Option<Test>,
    /// The seed with the smallest ratio.
    pub smallest: Observation,
    /// The seed with the largest ratio.
    pub largest: Observation,
}

/// An interval of 95 %, and the test that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability of a mean at least this far from 1 if the true one is 1; below
    /// [`LEVEL`] exactly if the interval excludes 1.
    pub p: f64,
}

impl Estimate {
    /// The ratio, with its interval if it has one, in numbers as `digits` prints them.
    pub fn shown(&self, digits: impl Fn(f64) -> String) -> String {
        let ratio = digits(self.ratio);
        match self.test {
            Some(test) => format!("{ratio} ({} to {})", digits(test.low), digits(test.high)),
            None => ratio,
        }
    }

    /// Of these ratios; `None` without any.
    pub fn of(observed: &[Observation]) -> Option<Self> {
        let by_ratio = |one: &&Observation, other: &&Observation| one.ratio.total_cmp(&other.ratio);
        let smallest = *observed.iter().min_by(by_ratio)?;
        // Of equal ones the first, as for the smallest.
        let largest = *observed.iter().rev().max_by(by_ratio)?;
        let logs: Vec<f64> = observed.iter().map(|one| libm::log(one.ratio)).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let is_constant = smallest.ratio == largest.ratio;
        let ratio = match is_constant {
            // Without the rounding of logarithms.
            true => smallest.ratio,
            false => libm::exp(mean),
        };
        Some(Self {
            seeds: observed.len(),
            ratio,
            test: match is_constant {
                true => constant(observed.len(), ratio),
                false => Some(test(&logs, mean)),
            },
            smallest,
            largest,
        })
    }
}

/// The test of seeds that all have one ratio: if it is 1, nothing differs.
fn constant(seeds: usize, ratio: f64) -> Option<Test> {
    (seeds > 1 && ratio == 1.0).then_some(Test {
        low: 1.0,
        high: 1.0,
        p: 1.0,
    })
}

/// The test of several logarithms that differ.
fn test(logs: &[f64], mean: f64) -> Test {
    let freedom = logs.len() - 1;
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    let error = (squares / freedom as f64 / logs.len() as f64).sqrt();
    let reach = student::critical(LEVEL, freedom) * error;
    Test {
        low: libm::exp(mean - reach),
        high: libm::exp(mean + reach),
        p: student::two_sided(mean / error, freedom),
    }
}

/// Corrects probabilities for their number (Holm, "A simple sequentially rejective multiple
/// test procedure", Scandinavian Journal of Statistics 6, 1979): of all those below
/// [`LEVEL`] after the correction, one or more are wrong with a probability of at most
/// `LEVEL`, however the rows depend on each other.
///
/// # Example
///
/// ```
/// let corrected = faas_seeds::estimate::holm(&[0.01, 0.04, 0.03]);
/// assert_eq!(corrected, [0.03, 0.06, 0.06]);
/// ```
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut corrected = vec![1.0; p.len()];
    let mut before = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        let left = (p.len() - rank) as f64;
        before = before.max((left * p[index]).min(1.0));
        corrected[index] = before;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimate(ratios: &[f64]) -> Estimate {
        let seeds = 1u64..;
        let observed: Vec<Observation> = seeds
            .zip(ratios)
            .map(|(seed, ratio)| Observation {
                seed,
                ratio: *ratio,
            })
            .collect();
        Estimate::of(&observed).unwrap()
    }

    #[test]
    fn three_seeds_by_hand() {
        // Logarithms to base 2: -2, -1, 0. Mean -1, deviation 1, error 1 / sqrt(3), and
        // t = sqrt(3) with 2 degrees of freedom: p = 1 - sqrt(3) / sqrt(5).
        let found = estimate(&[0.25, 0.5, 1.0]);
        assert!((found.ratio - 0.5).abs() < 1e-12);
        let test = found.test.unwrap();
        let reach = 2f64.powf(4.302_652_73 / 3f64.sqrt());
        assert!((test.low - 0.5 / reach).abs() < 1e-6, "{test:?}");
        assert!((test.high - 0.5 * reach).abs() < 1e-6, "{test:?}");
        assert!((test.p - (1.0 - 0.6f64.sqrt())).abs() < 1e-9, "{test:?}");
        assert_eq!((found.smallest.seed, found.largest.seed), (1, 3));
    }

    #[test]
    fn one_seed_and_equal_ratios_have_no_interval_to_exclude_1() {
        assert_eq!(estimate(&[0.5]).test, None);
        assert_eq!(estimate(&[0.5, 0.5]).test, None);
        let same = estimate(&[1.0, 1.0, 1.0]);
        let test = same.test.unwrap();
        assert_eq!(
            (same.ratio, test.low, test.high, test.p),
            (1.0, 1.0, 1.0, 1.0)
        );
        assert_eq!((same.smallest.seed, same.largest.seed), (1, 1));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_correction_is_that_of_the_definition() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.04]), [0.04]);
        // 4 x 0.01; 3 x 0.02; 2 x 0.02, but not less than the one before; 1 x 0.5.
        assert_eq!(holm(&[0.5, 0.01, 0.02, 0.02]), [0.5, 0.04, 0.06, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    proptest! {
        #[test]
        fn the_interval_excludes_1_exactly_if_the_test_rejects(
            ratios in prop::collection::vec(0.2..3.0f64, 2..25),
        ) {
            let test = estimate(&ratios).test.unwrap();
            let excludes = test.low > 1.0 || test.high < 1.0;
            prop_assert!(excludes == (test.p < LEVEL) || (test.p - LEVEL).abs() < 1e-6);
        }

        #[test]
        fn the_other_base_gives_the_inverse(ratios in prop::collection::vec(0.2..3.0f64, 2..9)) {
            let inverse: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
            let (one, other) = (estimate(&ratios), estimate(&inverse));
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
            let (one, other) = (one.test.unwrap(), other.test.unwrap());
            prop_assert!((one.low * other.high - 1.0).abs() < 1e-9);
        }
    }
}
