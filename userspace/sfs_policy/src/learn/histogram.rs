//! A histogram of service times with decay.

use super::buckets::{bucket, BUCKETS};

/// Weight of one completion, halved as an integer. The number of halvings until it is gone
/// follows from this.
pub const UNIT: u16 = 64;

/// Maximum number of completions in a histogram.
pub const MAX_WINDOW: u16 = u16::MAX / UNIT;

/// Buckets on either side that count as near: an octave.
const NEAR: usize = 4;

/// A completion is a surprise if less than one in this many was near it.
const SURPRISE: u32 = 16;

/// Counts of completions in each bucket, weighted towards the recent ones.
///
/// When the weights reach `window` completions, all are halved. So the last half to full window
/// of completions decides, however long it took. 188 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    weights: [u16; BUCKETS],
    total: u16,
    /// The sum of the weights, each times the number of its bucket. Kept, because each completion
    /// asks for the mean.
    moment: u32,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            weights: [0; BUCKETS],
            total: 0,
            moment: 0,
        }
    }
}

impl Histogram {
    /// Adds a completion after `service_ns` of CPU time. `window` is from 2 to [`MAX_WINDOW`];
    /// values outside are clamped.
    pub fn add(&mut self, service_ns: u64, window: u16) {
        self.add_bucket(bucket(service_ns), window);
    }

    /// Halves all weights if hardly any is near `service_ns`. So a change of a function takes
    /// effect after a few completions. A function whose completions vary without a pattern is
    /// not affected, because each of them is near some other.
    pub fn doubt(&mut self, service_ns: u64) {
        let at = bucket(service_ns);
        let near = &self.weights[at.saturating_sub(NEAR)..(at + NEAR + 1).min(BUCKETS)];
        let near: u32 = near.iter().map(|weight| u32::from(*weight)).sum();
        if near * SURPRISE < u32::from(self.total) {
            self.halve();
        }
    }

    /// Adds an invocation that was killed after `attained_ns`: it needed more than that. It is
    /// counted at the median of the longer ones in `self`, or if there are none, in `others`.
    /// If there are none there either, it is counted where it was killed.
    pub fn add_censored(&mut self, attained_ns: u64, window: u16, others: &Self) {
        let at = bucket(attained_ns);
        let place = self.median_above(at).or_else(|| others.median_above(at));
        self.add_bucket(place.unwrap_or(at), window);
    }

    fn add_bucket(&mut self, bucket: usize, window: u16) {
        let limit = window.clamp(2, MAX_WINDOW) * UNIT;
        while self.total > limit - UNIT {
            self.halve();
        }
        self.weights[bucket] += UNIT;
        self.total += UNIT;
        self.moment += bucket as u32 * u32::from(UNIT);
    }

    fn halve(&mut self) {
        self.weights.iter_mut().for_each(|weight| *weight /= 2);
        self.total = self.weights.iter().sum();
        self.moment = moment(&self.weights);
    }

    fn median_above(&self, at: usize) -> Option<usize> {
        let above = &self.weights[at + 1..];
        let total: u32 = above.iter().map(|weight| u32::from(*weight)).sum();
        let sums = above.iter().scan(0, |sum, weight| {
            *sum += u32::from(*weight);
            Some(*sum)
        });
        let place = sums.take_while(|sum| *sum * 2 < total).count();
        (total > 0).then_some(at + 1 + place)
    }

    /// The weight of each bucket; a completion adds [`UNIT`].
    pub fn weights(&self) -> &[u16; BUCKETS] {
        &self.weights
    }

    /// The sum of all weights.
    pub fn total(&self) -> u16 {
        self.total
    }

    /// The mean number of the buckets; 0 without completions.
    pub fn mean(&self) -> f64 {
        f64::from(self.moment) / f64::from(self.total.max(1))
    }

    /// The histogram with these weights; None if their sum exceeds [`MAX_WINDOW`] completions.
    pub fn from_weights(weights: [u16; BUCKETS]) -> Option<Self> {
        let add = |sum: u16, weight: &u16| sum.checked_add(*weight);
        let total = weights.iter().try_fold(0, add)?;
        (total <= MAX_WINDOW * UNIT).then(|| Self {
            total,
            moment: moment(&weights),
            weights,
        })
    }

    /// The bucket that contains the quantile `share` (0 to 1) of the weights; None if the
    /// histogram is empty.
    pub fn quantile(&self, share: f64) -> Option<usize> {
        let want = f64::from(self.total) * share;
        let mut sum = 0.0;
        let reached = |weight: &u16| {
            sum += f64::from(*weight);
            *weight > 0 && sum >= want
        };
        self.weights.iter().position(reached)
    }
}

/// The sum of `weights`, each times the number of its bucket. Fits: there are fewer than 100 buckets,
/// and all weights together are a u16.
fn moment(weights: &[u16; BUCKETS]) -> u32 {
    let weights = weights.iter().zip(0..);
    weights
        .map(|(weight, bucket)| u32::from(*weight) * bucket)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn of(ms: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        ms.iter().for_each(|ms| histogram.add(ms * MS, 100));
        histogram
    }

    #[test]
    fn forgets_by_halves() {
        let mut histogram = Histogram::default();
        (0..100).for_each(|_| histogram.add(MS, 8));
        assert!(histogram.total() <= 8 * UNIT);
        (0..8).for_each(|_| histogram.add(100 * MS, 8));
        let weights = histogram.weights();
        assert!(weights[bucket(100 * MS)] > 2 * weights[bucket(MS)]);
        (0..100).for_each(|_| histogram.add(100 * MS, 8));
        assert_eq!(histogram.weights()[bucket(MS)], 0);
    }

    #[test]
    fn the_mean_is_that_of_the_weights() {
        assert_eq!(Histogram::default().mean(), 0.0);
        let mut histogram = Histogram::default();
        for round in 0..500_u64 {
            histogram.doubt(round * MS);
            histogram.add(round * round * MS, 40);
            histogram.add_censored(round * MS, 40, &of(&[5, 500]));
            let again = Histogram::from_weights(*histogram.weights()).unwrap();
            assert_eq!(histogram, again);
        }
        let mean = of(&[1, 1, 1, 100]).mean();
        let places = [bucket(MS), bucket(100 * MS)].map(|place| place as f64);
        assert_eq!(mean, places[0] * 0.75 + places[1] * 0.25);
    }

    #[test]
    fn only_surprises_raise_doubt() {
        let mut histogram = of(&[10; 40]);
        histogram.doubt(15 * MS);
        assert_eq!(histogram.total(), 40 * UNIT);
        histogram.doubt(100 * MS);
        assert_eq!(histogram.total(), 20 * UNIT);
        let mut twofold = of(&[10, 10, 10, 1000]);
        twofold.doubt(1000 * MS);
        assert_eq!(twofold.total(), 4 * UNIT);
    }

    #[test]
    fn the_longest_window_fits() {
        let mut histogram = Histogram::default();
        (0..3000).for_each(|_| histogram.add(MS, u16::MAX));
        assert!(histogram.total() > MAX_WINDOW / 2 * UNIT);
        assert!(Histogram::from_weights(*histogram.weights()).is_some());
        assert_eq!(Histogram::from_weights([1000; BUCKETS]), None);
    }

    #[test]
    fn censored_completions_count_among_longer_ones() {
        let (mut one, others) = (Histogram::default(), of(&[1, 40, 80, 160]));
        one.add_censored(10 * MS, 100, &others);
        assert_eq!(one.weights()[bucket(80 * MS)], UNIT);
        one.add_censored(20 * MS, 100, &others);
        assert_eq!(one.weights()[bucket(80 * MS)], 2 * UNIT);
        one.add_censored(500 * MS, 100, &others);
        assert_eq!(one.weights()[bucket(500 * MS)], UNIT);
    }

    #[test]
    fn quantiles_are_buckets() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        let histogram = of(&[1, 1, 1, 100]);
        assert_eq!(histogram.quantile(0.0), Some(bucket(MS)));
        assert_eq!(histogram.quantile(0.75), Some(bucket(MS)));
        assert_eq!(histogram.quantile(0.76), Some(bucket(100 * MS)));
        assert_eq!(histogram.quantile(1.0), Some(bucket(100 * MS)));
    }
}
