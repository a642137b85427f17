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

    /// One of 2^64 independent streams of this seed; stream 0 is the one of [`Random::new`].
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [`low`, `high`).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform from 0 to `count` - 1; `count` is 1 to 2^32, for which the bias
    /// is negligible.
    pub fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count - 1)
    }

    /// Exponential with this mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit is in (0, 1], so that the logarithm is finite.
        -mean * libm::log(1.0 - self.unit())
    }

    /// Standard normal, by Box and Muller; at most 8.6 from 0, the limit of 53
    /// bits.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Log-normal with mean 1 and this coefficient of variation.
    pub fn noise(&mut self, cv: f64) -> f64 {
        let variance = libm::log(1.0 + cv * cv);
        libm::exp(variance.sqrt() * self.normal() - variance / 2.0)
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
        assert_eq!(draw(1), Random::stream(1, 0).unit());
        assert_ne!(draw(1), Random::stream(1, 1).unit());
    }

    #[test]
    fn normal_and_noise_have_their_moments() {
        let mut random = Random::new(11);
        let count = 100_000;
        let mut moments = |draw: &mut dyn FnMut(&mut Random) -> f64| {
            let all: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let square = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            (mean, (square / all.len() as f64).sqrt())
        };
        // Three standard errors of a mean with deviation 1 are 3 / sqrt(100,000) = 0.0095.
        let (mean, deviation) = moments(&mut |random| random.normal());
        assert!(
            mean.abs() < 0.0095 && (deviation - 1.0).abs() < 0.01,
            "{mean} {deviation}"
        );
        let (mean, deviation) = moments(&mut |random| random.noise(0.5));
        assert!(
            (mean - 1.0).abs() < 0.005 && (deviation - 0.5).abs() < 0.015,
            "{mean} {deviation}"
        );
        assert_eq!(random.noise(0.0), 1.0);
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
