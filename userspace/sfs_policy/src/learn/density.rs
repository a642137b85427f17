//! The distribution of a function's service times, estimated from few of them.
//!
//! A histogram of three completions says that nothing lies between them and nothing beyond, which
//! ranks take literally: an invocation that outlives all three looks lost, and its tail suffers. So
//! each completion stands for its neighbourhood: a kernel density estimate on the logarithm of
//! time. The kernel is as wide as two completions of one function differ, which [`Spread`] learns
//! from all functions and from the function itself. It narrows with the fifth root of the number
//! of completions, as the error of such an estimate is least (Silverman, "Density Estimation for
//! Statistics and Data Analysis", 1986, Section 3.4). It is Student's t with five degrees of
//! freedom, whose tails are longer than the normal distribution's.
//!
//! That is too wide for service times with gaps or edges, such as those of two kinds of requests. If
//! a narrower kernel explains each completion clearly better by the others, it is taken
//! (cross-validation by likelihood: Silverman, Section 3.4.4). docs/policy.md has what other
//! widths gain and lose.
//!
//! Widths and spreads are squares of numbers of buckets: so nothing takes a root.

use super::buckets::{bucket, BUCKETS};
use super::histogram::{Histogram, UNIT};
use super::rank::Mass;

/// Limit of the kernel's width around a single completion, squared: one and a half doublings.
const WIDEST: f64 = 36.0;

/// What is left of a squared width with twice as many completions: 2 to the power of -2/5.
const LEFT: f64 = 0.757_858_283_255_199;

/// Degrees of freedom of the kernel.
const FREEDOM: f64 = 5.0;

/// The kernel ends at so many widths, squared.
const REACH: f64 = 9.0;

/// The spread of all functions weighs as much as so many completions in the spread of each, and
/// what is assumed of all functions before any is known as many in theirs.
const PRIOR: f64 = 4.0;

/// Number of completions after which what is known of all functions is halved.
const WINDOW: f64 = 1024.0;

/// By how much the service times of one function differ, in functions of all kinds: the pooled
/// variance of the numbers of buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// Sum of squared deviations, and the number of completions that it is of.
    sum: f64,
    completions: f64,
}

impl Spread {
    /// Notes that a function with `history` has completed after `service_ns`.
    pub fn note(&mut self, history: &Histogram, service_ns: u64) {
        let known = completions(history);
        if known < 1.0 {
            return;
        }
        let off = bucket(service_ns) as f64 - history.mean();
        // The mean of few completions is off by itself.
        self.add(off * off * known / (known + 1.0), 1.0);
    }

    /// Adds what the histogram of a function says.
    pub fn add_all(&mut self, history: &Histogram) {
        let known = completions(history);
        if known >= 2.0 {
            self.add(variance(history) * known, known - 1.0);
        }
    }

    fn add(&mut self, squares: f64, completions: f64) {
        self.sum += squares;
        self.completions += completions;
        if self.completions > WINDOW {
            let half = WINDOW / 2.0 / self.completions;
            self.sum *= half;
            self.completions *= half;
        }
    }

    /// The variance of a function with `history`.
    fn of(&self, history: &Histogram) -> f64 {
        // Two completions differ by twice the variance, squared.
        let all = (self.sum + PRIOR * WIDEST / 2.0) / (self.completions + PRIOR);
        let known = completions(history);
        (all * PRIOR + variance(history) * known) / (PRIOR + known)
    }

    /// The distribution of a function with `history`, in completions: its sum is their number.
    pub fn estimate(&self, history: &Histogram) -> Mass {
        let mut mass = [0.0; BUCKETS];
        let width = (2.0 * self.of(history)).min(WIDEST);
        let kernel = Kernel::best(width, history);
        for (bucket, weight) in history.weights().iter().enumerate() {
            if *weight > 0 {
                kernel.add(&mut mass, bucket, f64::from(*weight) / f64::from(UNIT));
            }
        }
        mass
    }
}

/// The number of completions in a histogram.
fn completions(histogram: &Histogram) -> f64 {
    f64::from(histogram.total()) / f64::from(UNIT)
}

/// The variance of the numbers of a histogram's buckets; 0 without completions.
fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.mean();
    let square = |bucket: usize| (bucket as f64 - mean) * (bucket as f64 - mean);
    let weights = histogram.weights().iter().enumerate();
    let sum: f64 = weights
        .map(|(bucket, weight)| square(bucket) * f64::from(*weight))
        .sum();
    sum / f64::from(histogram.total().max(1))
}

/// From so many completions on, narrower kernels are tried.
const ENOUGH: f64 = 32.0;

/// Their squared widths, relative to the usual one.
const NARROWER: [f64; 3] = [1.0 / 4.0, 1.0 / 16.0, 0.0];

/// By how much the logarithm of the likelihood must be larger: few completions have gaps by
/// chance.
const CLEARLY: f64 = 2.0;

/// The natural logarithm of a positive normal number, to within 0.0002: the library has none without
/// `std`.
fn ln(number: f64) -> f64 {
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    // From 1 to 2.
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let z2 = z * z;
    f64::from(exponent) * core::f64::consts::LN_2 + 2.0 * z * (1.0 + z2 * (1.0 / 3.0 + z2 / 5.0))
}

/// The weights around a completion.
struct Kernel {
    /// Those at a distance of 0, 1, ... buckets.
    weights: [f64; BUCKETS],
    /// How many there are, 1 to [`BUCKETS`].
    length: usize,
}

impl Kernel {
    /// The one for so many completions, of this squared width around a single one.
    fn of(mut width: f64, completions: f64) -> Self {
        let mut known = 1.0;
        while known * 2.0 <= completions {
            known *= 2.0;
            width *= LEFT;
        }
        let mut weights = [0.0; BUCKETS];
        weights[0] = 1.0;
        let mut length = 1;
        while length < BUCKETS {
            let square = (length * length) as f64;
            if square > REACH * width {
                break;
            }
            let spread = 1.0 + square / width / FREEDOM;
            // The power is half of one more than the degrees of freedom.
            weights[length] = 1.0 / (spread * spread * spread);
            length += 1;
        }
        let sum = 2.0 * weights.iter().sum::<f64>() - weights[0];
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Self { weights, length }
    }

    /// The one of this squared width, or a narrower one that explains `history` clearly better.
    fn best(width: f64, history: &Histogram) -> Self {
        let known = completions(history);
        let mut best = Self::of(width, known);
        if known < ENOUGH {
            return best;
        }
        let mut likelihood = best.likelihood(history) + CLEARLY;
        for part in NARROWER {
            let other = Self::of(width * part, known);
            let others = other.likelihood(history);
            if others > likelihood {
                (best, likelihood) = (other, others);
            }
        }
        best
    }

    /// The logarithm of the likelihood of each completion in the estimate by the others, summed. One
    /// completion is spread over all buckets, so that nothing is impossible.
    fn likelihood(&self, history: &Histogram) -> f64 {
        let weights = history.weights();
        let in_bucket = |bucket: usize| f64::from(weights[bucket]) / f64::from(UNIT);
        let by_all = |bucket: usize| -> f64 {
            let first = bucket.saturating_sub(self.length - 1);
            let last = (bucket + self.length).min(BUCKETS);
            let near = (first..last).filter(|other| weights[*other] > 0);
            near.map(|other| in_bucket(other) * self.weights[bucket.abs_diff(other)])
                .sum()
        };
        let anywhere = 1.0 / BUCKETS as f64;
        let all = completions(history);
        (0..BUCKETS)
            .filter(|bucket| weights[*bucket] > 0)
            .map(|bucket| {
                let completions = in_bucket(bucket);
                let own = completions.min(1.0) * self.weights[0];
                let by_others = (by_all(bucket) - own).max(0.0);
                completions * ln((by_others + anywhere) / all)
            })
            .sum()
    }

    /// Adds completions around `bucket`. What would lie beyond the first or the last bucket is in
    /// that one, which has no end.
    fn add(&self, mass: &mut Mass, bucket: usize, completions: f64) {
        for (distance, weight) in self.weights[..self.length].iter().enumerate() {
            let each = completions * weight;
            mass[(bucket + distance).min(BUCKETS - 1)] += each;
            if distance > 0 {
                mass[bucket.saturating_sub(distance)] += each;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::bucket;
    use super::*;

    const MS: u64 = 1_000_000;

    fn of(ns: u64, completions: u32) -> Mass {
        let mut histogram = Histogram::default();
        (0..completions).for_each(|_| histogram.add(ns, 1000));
        Spread::default().estimate(&histogram)
    }

    /// The part of a function's estimate that lies within a doubling of 10 ms.
    fn near(spread: &Spread, history: &Histogram) -> f64 {
        let at = bucket(10 * MS);
        let mass = spread.estimate(history);
        mass[at - 4..=at + 4].iter().sum::<f64>() / completions(history)
    }

    #[test]
    fn the_estimate_has_all_completions_and_its_peak_where_they_are() {
        for ns in [0, 10 * MS, u64::MAX] {
            for completions in [1, 7, 500] {
                let mass = of(ns, completions);
                let sum: f64 = mass.iter().sum();
                assert!((sum - f64::from(completions)).abs() < 1e-9, "{sum}");
                let peak = (0..BUCKETS).max_by(|a, b| mass[*a].total_cmp(&mass[*b]));
                assert_eq!(peak, Some(bucket(ns)));
            }
        }
    }

    #[test]
    fn logarithms_are_near_those_of_std() {
        for number in [
            1e-300, 0.003, 0.5, 0.999, 1.0, 1.7, 1.999_999, 2.0, 12_345.0,
        ] {
            assert!((ln(number) - number.ln()).abs() < 2e-4, "{number}");
        }
    }

    #[test]
    fn without_completions_there_is_no_estimate() {
        let none = Spread::default().estimate(&Histogram::default());
        assert_eq!(none, [0.0; BUCKETS]);
    }

    #[test]
    fn a_completion_says_more_where_functions_vary_little() {
        let mut one = Histogram::default();
        one.add(10 * MS, 1000);
        let unknown = near(&Spread::default(), &one);
        assert!((0.5..0.7).contains(&unknown), "{unknown}");

        let mut steady = Spread::default();
        let mut history = Histogram::default();
        for _ in 0..100 {
            steady.note(&history, 3 * MS);
            history.add(3 * MS, 1000);
        }
        let known = near(&steady, &one);
        assert!(known > 0.99, "{known}");

        let mut wild = Spread::default();
        let mut history = Histogram::default();
        for ms in [1, 1000].repeat(50) {
            wild.note(&history, ms * MS);
            history.add(ms * MS, 1000);
        }
        let lost = near(&wild, &one);
        assert!((0.4..0.6).contains(&lost), "{lost}");
    }

    #[test]
    fn a_steady_function_among_wild_ones_is_known_by_itself() {
        let mut wild = Spread::default();
        let mut history = Histogram::default();
        for ms in [1, 1000].repeat(50) {
            wild.note(&history, ms * MS);
            history.add(ms * MS, 1000);
        }
        let mut steady = Histogram::default();
        let mut last = 0.0;
        for _ in 0..64 {
            steady.add(10 * MS, 1000);
            let near = near(&wild, &steady);
            assert!(near >= last - 1e-9, "{near} {last}");
            last = near;
        }
        assert!(last > 0.85, "{last}");
    }

    #[test]
    fn service_times_with_a_gap_keep_it() {
        let mut two_kinds = Histogram::default();
        for ms in [10, 11, 12, 10, 13, 11, 900, 950].repeat(6) {
            two_kinds.add(ms * MS, 1000);
        }
        let mass = Spread::default().estimate(&two_kinds);
        let gap = &mass[bucket(40 * MS)..bucket(300 * MS)];
        let gap = gap.iter().sum::<f64>() / completions(&two_kinds);
        assert!(gap < 0.01, "{gap}");

        // Without one, the usual kernel stays.
        let mut one_kind = Histogram::default();
        for ms in [
            5, 50, 8, 20, 14, 11, 30, 9, 7, 17, 26, 12, 39, 3, 15, 23, 10, 6,
        ] {
            one_kind.add(ms * MS, 1000);
        }
        let usual = Kernel::of(20.0, completions(&one_kind));
        let best = Kernel::best(20.0, &one_kind);
        assert_eq!(best.length, usual.length);
    }

    #[test]
    fn what_is_saved_says_what_was_noted() {
        let mut noted = Spread::default();
        let mut history = Histogram::default();
        for ms in [5, 9, 7, 30, 6, 8, 12, 5] {
            noted.note(&history, ms * MS);
            history.add(ms * MS, 1000);
        }
        let mut saved = Spread::default();
        saved.add_all(&history);
        assert_eq!(saved.completions, noted.completions);
        assert!((saved.sum - noted.sum).abs() < 1e-9, "{saved:?} {noted:?}");
        // Much at once is no more than its window.
        (0..1000).for_each(|_| saved.add_all(&history));
        assert!(saved.completions <= WINDOW);
    }
}
