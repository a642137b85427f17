//! Means and percentiles.

use serde::{Deserialize, Serialize};

/// Mean and percentiles (by nearest rank) of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

impl Stats {
    /// Of times in microseconds, converted to milliseconds; `None` if empty.
    pub fn of_us(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        Self::of_sorted_us(&values)
    }

    /// Of plain ratios; `None` if empty.
    pub fn of_ratios(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Self::of_sorted_ratios(&values)
    }

    /// Of sorted times in microseconds, converted to milliseconds.
    pub fn of_sorted_us(sorted: &[u64]) -> Option<Self> {
        Self::of_sorted(sorted, round(mean_us(sorted)? / 1e3, 3), |us| us.ms())
    }

    /// Of sorted plain ratios.
    pub fn of_sorted_ratios(sorted: &[f64]) -> Option<Self> {
        Self::of_sorted(sorted, ratio(mean(sorted)?), ratio)
    }

    fn of_sorted<T: Copy>(sorted: &[T], mean: f64, unit: fn(T) -> f64) -> Option<Self> {
        if sorted.is_empty() {
            return None;
        }
        let at = |per_mille| unit(nearest_rank(sorted, per_mille, 1000));
        Some(Self {
            mean,
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: at(1000),
        })
    }
}

/// The spread of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Interquartile range: the 75th percentile less the 25th, by nearest rank.
    pub iqr: f64,
    /// Mean squared distance from the mean: milliseconds squared for times.
    pub variance: f64,
}

impl Spread {
    /// Of sorted times in microseconds, converted to milliseconds; `None` if
    /// empty.
    pub fn of_sorted_us(sorted: &[u64]) -> Option<Self> {
        let mean = mean_us(sorted)?;
        let square = |us: &u64| (*us as f64 - mean) * (*us as f64 - mean);
        let variance = sorted.iter().map(square).sum::<f64>() / sorted.len() as f64;
        Some(Self {
            iqr: (nearest_rank(sorted, 3, 4) - nearest_rank(sorted, 1, 4)).ms(),
            variance: round(variance / 1e6, 3),
        })
    }

    /// Of sorted plain ratios; `None` if empty.
    pub fn of_sorted_ratios(sorted: &[f64]) -> Option<Self> {
        Some(Self {
            variance: ratio(variance(sorted)?),
            iqr: ratio(nearest_rank(sorted, 3, 4) - nearest_rank(sorted, 1, 4)),
        })
    }
}

/// Microseconds as milliseconds.
pub trait Ms {
    /// Milliseconds, rounded to 3 decimals (which loses nothing).
    fn ms(self) -> f64;
}

impl Ms for u64 {
    fn ms(self) -> f64 {
        round(self as f64 / 1e3, 3)
    }
}

/// The value at rank ceil(n x part / whole) of n `sorted` values, counted from
/// 1; the smallest for part 0. There must be at least one value.
pub fn nearest_rank<T: Copy>(sorted: &[T], part: usize, whole: usize) -> T {
    let rank = (sorted.len() * part).div_ceil(whole);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The percentile of `sorted` values at `per_mille` (0 to 1000), as
/// [`nearest_rank`]; `None` if empty.
pub fn percentile(sorted: &[f64], per_mille: usize) -> Option<f64> {
    (!sorted.is_empty()).then(|| nearest_rank(sorted, per_mille, 1000))
}

/// The values, sorted.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The mean; `None` if empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance: the mean squared distance from the mean of these values, not
/// an estimate for a population; `None` if empty.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let square = |value: &f64| (value - mean) * (value - mean);
    Some(values.iter().map(square).sum::<f64>() / values.len() as f64)
}

/// The standard deviation: the root of the [`variance`]; `None` if empty.
pub fn deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// Coefficient of variation: deviation / mean; `None` if empty.
pub fn variation(values: &[f64]) -> Option<f64> {
    Some(deviation(values)? / mean(values)?)
}

/// The share of values for which `holds` is true, 0 to 1; `None` if empty.
pub fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> Option<f64> {
    let count = values.iter().filter(|value| holds(**value)).count();
    (!values.is_empty()).then(|| count as f64 / values.len() as f64)
}

/// The mean of times, in their unit; `None` if empty. The sum is exact.
fn mean_us(values: &[u64]) -> Option<f64> {
    let sum: u128 = values.iter().map(|us| u128::from(*us)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
}

/// A ratio, rounded to 4 decimals.
pub fn ratio(value: f64) -> f64 {
    round(value, 4)
}

/// `value` rounded to this many decimals.
pub fn round(value: f64, decimals: i32) -> f64 {
    let factor = 10f64.powi(decimals);
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_ten_values() {
        // Ranks ceil(10 p): p50 -> 5th, p90 -> 9th, p99 -> ceil(9.9) = 10th.
        let stats = Stats::of_us((1..=10).map(|n| n * 1000).collect()).unwrap();
        assert_eq!((stats.p50, stats.p90, stats.p99), (5.0, 9.0, 10.0));
        assert_eq!((stats.mean, stats.p999, stats.max), (5.5, 10.0, 10.0));
        assert_eq!(Stats::of_us(vec![]), None);
        assert_eq!(Stats::of_ratios(vec![]), None);
    }

    #[test]
    fn spread_of_four_and_of_one() {
        // 1 2 4 9: quartiles are ranks 1 and 3; mean 4, (9 + 4 + 0 + 25) / 4.
        let four = Spread::of_sorted_us(&[1000, 2000, 4000, 9000]).unwrap();
        assert_eq!((four.iqr, four.variance), (3.0, 9.5));
        let ratios = Spread::of_sorted_ratios(&[1.0, 2.0, 4.0, 9.0]).unwrap();
        assert_eq!(ratios, four);
        let one = Spread::of_sorted_us(&[7]).unwrap();
        assert_eq!((one.iqr, one.variance), (0.0, 0.0));
        assert_eq!(Spread::of_sorted_us(&[]), None);
    }

    #[test]
    fn moments_and_shares_by_hand() {
        let two = [1.0, 3.0];
        assert_eq!((mean(&two), variance(&two)), (Some(2.0), Some(1.0)));
        assert_eq!((deviation(&two), variation(&two)), (Some(1.0), Some(0.5)));
        assert_eq!(share(&two, |value| value > 1.0), Some(0.5));
        assert_eq!(
            (mean(&[]), variance(&[]), deviation(&[])),
            (None, None, None)
        );
        assert_eq!((variation(&[]), share(&[], |_| true)), (None, None));
    }

    #[test]
    fn percentiles_of_plain_values_are_by_nearest_rank() {
        let four = sorted(vec![4.0, 2.0, 1.0, 3.0]);
        let found = [0, 250, 260, 500, 1000].map(|per_mille| percentile(&four, per_mille));
        assert_eq!(found, [1.0, 1.0, 2.0, 2.0, 4.0].map(Some));
        assert_eq!(percentile(&[], 500), None);
    }

    #[test]
    fn rounding_is_to_the_nearest() {
        assert_eq!(1_234_567u64.ms(), 1234.567);
        assert_eq!(ratio(1.0 / 3.0), 0.3333);
        assert_eq!(round(2.0005, 3), 2.001);
    }

    /// The definition itself: the smallest value such that at least part /
    /// whole of all values do not exceed it.
    fn naive(values: &[u64], part: usize, whole: usize) -> u64 {
        let enough = |candidate: &&u64| {
            let covered = values.iter().filter(|value| value <= candidate).count();
            covered * whole >= values.len() * part
        };
        *values.iter().filter(enough).min().unwrap()
    }

    proptest! {
        #[test]
        fn nearest_rank_agrees_with_its_definition(
            mut values in prop::collection::vec(0u64..50, 1..60),
            part in 0usize..=1000,
        ) {
            let want = naive(&values, part, 1000);
            values.sort_unstable();
            prop_assert_eq!(nearest_rank(&values, part, 1000), want);
        }

        #[test]
        fn statistics_are_ordered(values in prop::collection::vec(1u64..1_000_000, 1..200)) {
            let stats = Stats::of_us(values).unwrap();
            let order = [stats.p50, stats.p90, stats.p99, stats.p999, stats.max];
            prop_assert!(order.windows(2).all(|two| two[0] <= two[1]));
            prop_assert!(stats.mean <= stats.max);
        }
    }
}
