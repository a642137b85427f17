//! The Gittins index of a distribution of service times X.
//!
//! For an invocation that has attained a:
//!
//! G(a) = sup over d > 0 of P(X - a <= d | X > a) / E[min(X - a, d) | X > a]
//!
//! the best ratio of the probability of completion within d to the CPU time
//! spent on it (Gittins 1979; Aalto, Ayesta & Righter 2009, eq. 4). With the
//! distribution F and H(x) = the integral of 1 - F from 0 to x, it is the
//! steepest slope from (H(a), F(a)) to a later point of the curve (H, F). For
//! an empirical distribution only the values that occur matter, and the
//! candidates among them are the upper convex hull of the points after a.
//! Between two values G rises, since less work is left for the same
//! probability; at a value it falls if the invocation is still not complete.

use crate::time::{Time, PER_US};

/// Maximum number of values that describe an empirical distribution. A sample
/// with more different values is reduced to this many quantiles.
pub const MAX_VALUES: usize = 512;

/// The index of one distribution, by attained service.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// 0 and the values of the distribution, ascending.
    values: Vec<Time>,
    /// F at each of them.
    share: Vec<f64>,
    /// H at each of them, in microseconds.
    area: Vec<f64>,
    /// For each, the next corner of the hull of all later points.
    corner: Vec<usize>,
    /// G at each of them.
    index: Vec<f64>,
}

impl Index {
    /// The index for the empirical distribution of `sample`, in ticks. An empty
    /// sample gives 0 everywhere.
    pub fn of(mut sample: Vec<Time>) -> Self {
        sample.sort_unstable();
        let values = quantiles(&sample);
        let total = sample.len() as f64;
        let below = |value: &Time| sample.partition_point(|one| one <= value) as f64;
        let share: Vec<f64> = values.iter().map(|value| below(value) / total).collect();
        let mut area = vec![0.0; values.len()];
        for point in 1..values.len() {
            let width = us(values[point] - values[point - 1]);
            area[point] = area[point - 1] + (1.0 - share[point - 1]) * width;
        }
        let mut this = Self {
            corner: (1..=values.len()).collect(),
            index: vec![0.0; values.len()],
            values,
            share,
            area,
        };
        for point in (0..this.values.len().saturating_sub(1)).rev() {
            let (area, share) = (this.area[point], this.share[point]);
            (this.corner[point], this.index[point]) = this.steepest(area, share, point + 1);
        }
        this
    }

    /// G at `age` ticks of attained service, per microsecond; 0 from the
    /// largest value on, where the distribution has no data.
    pub fn at(&self, age: Time) -> f64 {
        let point = self.point(age);
        let since = us(age - self.values[point]);
        if since == 0.0 || point + 1 == self.values.len() {
            return self.index[point];
        }
        let share = self.share[point];
        let area = self.area[point] + (1.0 - share) * since;
        self.steepest(area, share, point + 1).1
    }

    /// The first age after `age` at which G is below `bound`, if any.
    pub fn falls_below(&self, bound: f64, age: Time) -> Option<Time> {
        let next = self.point(age) + 1;
        let place = self.index[next..].iter().position(|index| *index < bound)?;
        Some(self.values[next + place])
    }

    /// The last point at or before `age`.
    fn point(&self, age: Time) -> usize {
        self.values.partition_point(|value| *value <= age) - 1
    }

    /// Along the hull from point `from` on: the corner with the steepest slope
    /// from (`area`, `share`), and that slope.
    fn steepest(&self, area: f64, share: f64, from: usize) -> (usize, f64) {
        let slope = |corner: usize| (self.share[corner] - share) / (self.area[corner] - area);
        let (mut best, mut steepest) = (from, slope(from));
        while self.corner[best] < self.values.len() {
            let next = slope(self.corner[best]);
            if next < steepest {
                break;
            }
            (best, steepest) = (self.corner[best], next);
        }
        (best, steepest)
    }
}

fn us(ticks: Time) -> f64 {
    ticks as f64 / PER_US as f64
}

/// 0 and the different values of `sorted`, or [`MAX_VALUES`] quantiles of it.
fn quantiles(sorted: &[Time]) -> Vec<Time> {
    let mut values = sorted.to_vec();
    values.dedup();
    if values.len() > MAX_VALUES {
        let rank = |step: usize| (sorted.len() * step).div_ceil(MAX_VALUES) - 1;
        values = (1..=MAX_VALUES).map(|step| sorted[rank(step)]).collect();
        values.dedup();
    }
    values.insert(0, 0);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(sample_us: &[u64]) -> Index {
        Index::of(sample_us.iter().map(|us| us * PER_US).collect())
    }

    /// G by its definition, over all values.
    fn by_definition(sample_us: &[u64], age_us: f64) -> f64 {
        let later: Vec<f64> = sample_us.iter().map(|us| *us as f64 - age_us).collect();
        let later: Vec<f64> = later.into_iter().filter(|left| *left > 0.0).collect();
        let ratio = |d: &f64| {
            let done = later.iter().filter(|left| *left <= d).count() as f64;
            done / later.iter().map(|left| left.min(*d)).sum::<f64>()
        };
        later.iter().map(ratio).fold(0.0, f64::max)
    }

    #[test]
    fn agrees_with_the_definition() {
        let samples: [&[u64]; 5] = [
            &[10],
            &[1, 10],
            &[5, 6, 7, 100, 101, 5000],
            &[3, 3, 3, 9, 9, 27, 81, 81],
            &[1, 100, 101, 102, 103, 104],
        ];
        for sample in samples {
            let index = index(sample);
            for age in 0..=*sample.last().unwrap() {
                let (found, want) = (index.at(age * PER_US), by_definition(sample, age as f64));
                assert!(
                    (found - want).abs() < 1e-9 * want.max(1e-9),
                    "{sample:?} at {age}: {found} {want}"
                );
            }
        }
    }

    #[test]
    fn one_value_makes_it_rise() {
        // G(a) = 1 / (x - a).
        let index = index(&[10, 10]);
        assert!((index.at(0) - 0.1).abs() < 1e-12);
        assert!((index.at(8 * PER_US) - 0.5).abs() < 1e-12);
        assert_eq!(index.at(10 * PER_US), 0.0);
        assert_eq!(index.falls_below(0.05, 0), Some(10 * PER_US));
    }

    #[test]
    fn a_mixture_falls_at_its_short_value() {
        // G(0) = (1/2) / 1, G(1) = 1 / 9.
        let index = index(&[1, 10]);
        assert!((index.at(0) - 0.5).abs() < 1e-12);
        assert!((index.at(PER_US) - 1.0 / 9.0).abs() < 1e-12);
        assert_eq!(index.falls_below(0.5, 0), Some(PER_US));
        assert_eq!(index.falls_below(0.1, 0), Some(10 * PER_US));
    }

    #[test]
    fn many_values_become_quantiles() {
        let sample: Vec<Time> = (1..=100_000).map(|us| us * PER_US).collect();
        let index = Index::of(sample);
        assert_eq!(index.values.len(), MAX_VALUES + 1);
        assert_eq!(*index.values.last().unwrap(), 100_000 * PER_US);
        assert_eq!(*index.share.last().unwrap(), 1.0);
    }

    #[test]
    fn an_empty_sample_gives_zero() {
        assert_eq!(index(&[]).at(7), 0.0);
        assert_eq!(index(&[]).falls_below(1.0, 7), None);
    }
}
