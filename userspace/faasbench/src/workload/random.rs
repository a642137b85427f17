//! Random numbers that are the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A stream of random numbers, determined by its seed.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [`low`, `high`).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Exponential with this mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit is in (0, 1], so that the logarithm is finite.
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_stream() {
        let draw = |seed| Random::new(seed).unit();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn samples_have_the_mean_of_their_distribution() {
        let mut random = Random::new(7);
        let count = 100_000;
        let mean = (0..count).map(|_| random.exponential(5.0)).sum::<f64>() / f64::from(count);
        assert!((mean - 5.0).abs() < 0.1, "{mean}");
        let mean = (0..count).map(|_| random.uniform(2.0, 4.0)).sum::<f64>() / f64::from(count);
        assert!((mean - 3.0).abs() < 0.02, "{mean}");
    }
}
