//! Processes of arrivals.

use super::random::Random;
use crate::input::MAX_US;

/// Independent arrivals at a constant rate.
#[derive(Debug, Clone)]
pub struct Poisson {
    mean_gap_us: f64,
    now_us: f64,
}

impl Poisson {
    /// Arrivals that are `mean_gap_us` microseconds apart on average.
    pub fn new(mean_gap_us: f64) -> Self {
        Self {
            mean_gap_us,
            now_us: 0.0,
        }
    }

    /// The next arrival in microseconds since the start, at most [`MAX_US`].
    pub fn next(&mut self, random: &mut Random) -> u64 {
        self.now_us += random.exponential(self.mean_gap_us);
        (self.now_us.round() as u64).min(MAX_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let mut random = Random::new(3);
        let mut arrivals = Poisson::new(1000.0);
        let times: Vec<u64> = (0..50_000).map(|_| arrivals.next(&mut random)).collect();
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64)
            .collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        // An exponential's standard deviation is its mean.
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }
}
