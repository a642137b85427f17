//! The distribution of a function's service times, estimated from few of them.
//!
//! A histogram of three completions says that nothing lies between them and nothing beyond, which
//! ranks take literally: an invocation that outlives all three looks lost, and its tail suffers. So
//! each completion stands for its neighbourhood: a kernel density estimate on the logarithm of
//! time. Its kernel narrows with the fifth root of the number of completions, as the error of
//! such an estimate is least (Silverman, "Density Estimation for Statistics and Data Analysis", 1986,
//! Section 3.4). It is Student's t with five degrees of freedom, whose tails are longer than the
//! normal distribution's. docs/policy.md has what other widths gain and lose.

use super::buckets::BUCKETS;
use super::histogram::{Histogram, UNIT};
use super::rank::Mass;

/// Width of the kernel around a single completion, in buckets: one and a half doublings.
const WIDTH: f64 = 6.0;

/// What is left of it with twice as many completions: 2 to the power of -1/5.
const LEFT: f64 = 0.870_550_563_296_124;

/// Degrees of freedom of the kernel.
const FREEDOM: f64 = 5.0;

/// The kernel ends at so many widths.
const REACH: f64 = 3.0;

/// The estimate, in completions: its sum is the number of completions in `histogram`.
pub fn estimate(histogram: &Histogram) -> Mass {
    let mut mass = [0.0; BUCKETS];
    let kernel = Kernel::of(f64::from(histogram.total()) / f64::from(UNIT));
    for (bucket, weight) in histogram.weights().iter().enumerate() {
        if *weight > 0 {
            kernel.add(&mut mass, bucket, f64::from(*weight) / f64::from(UNIT));
        }
    }
    mass
}

/// The weights around a completion.
struct Kernel {
    /// Those at a distance of 0, 1, ... buckets.
    weights: [f64; BUCKETS],
    /// How many there are, at most [`BUCKETS`].
    length: usize,
}

impl Kernel {
    /// The one for so many completions.
    fn of(completions: f64) -> Self {
        let mut width = WIDTH;
        let mut known = 1.0;
        while known * 2.0 <= completions {
            known *= 2.0;
            width *= LEFT;
        }
        let mut weights = [0.0; BUCKETS];
        let length = ((REACH * width) as usize + 1).min(BUCKETS);
        for (distance, weight) in weights[..length].iter_mut().enumerate() {
            let times = distance as f64 / width;
            let spread = 1.0 + times * times / FREEDOM;
            // The power is half of one more than the degrees of freedom.
            *weight = 1.0 / (spread * spread * spread);
        }
        let sum = 2.0 * weights.iter().sum::<f64>() - weights[0];
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Self { weights, length }
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
        estimate(&histogram)
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
    fn without_completions_there_is_no_estimate() {
        assert_eq!(estimate(&Histogram::default()), [0.0; BUCKETS]);
    }

    #[test]
    fn more_completions_make_it_narrower() {
        let near = |completions| {
            let at = bucket(10 * MS);
            let mass = of(10 * MS, completions);
            mass[at - 4..=at + 4].iter().sum::<f64>() / f64::from(completions)
        };
        let (one, many) = (near(1), near(128));
        // Within a doubling of it.
        assert!((0.45..0.65).contains(&one), "{one}");
        assert!((0.8..0.95).contains(&many), "{many}");
        assert!(near(2) > one && near(32) < many);
        // As the sum of completions at different places, each with the kernel of all.
        let mut histogram = Histogram::default();
        histogram.add(MS, 1000);
        histogram.add(100 * MS, 1000);
        let both = estimate(&histogram);
        let (apart, alone) = (both[bucket(MS)], of(MS, 2)[bucket(MS)] / 2.0);
        assert!((apart - alone).abs() < 0.01, "{apart} {alone}");
    }
}
