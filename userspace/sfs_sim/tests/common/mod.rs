//! Shared by the tests: workloads by formula, and means with confidence
//! intervals.

// Each test program uses only a part of this module.
#![allow(dead_code)]

use faas_data::trace::Invocation;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::{simulate, Outcome};

/// Reproducible random numbers.
pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Poisson arrivals, `gap_us` apart on average, of invocations that compute for
/// as long as `service_us` draws.
pub fn poisson(
    count: usize,
    gap_us: f64,
    seed: u64,
    mut service_us: impl FnMut(&mut Random) -> f64,
) -> Vec<Invocation> {
    let mut random = Random::new(seed);
    let mut now_us = 0.0;
    let mut draw = |_| {
        now_us += random.exponential(gap_us);
        let service = service_us(&mut random).round().max(1.0);
        Invocation::cpu(now_us as u64, "f", service as u64)
    };
    (0..count).map(&mut draw).collect()
}

pub fn run(trace: &[Invocation], kind: Kind, cpus: u32) -> Vec<Outcome> {
    simulate(trace, kind, &Settings::new(cpus)).unwrap()
}

/// Turnarounds in microseconds.
pub fn turnarounds(trace: &[Invocation], outcomes: &[Outcome]) -> Vec<f64> {
    let pairs = trace.iter().zip(outcomes);
    pairs
        .map(|(one, outcome)| (outcome.end_us() - one.arrival_us) as f64)
        .collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Checks that `want` is in the 99.9 % confidence interval of the mean of
/// `values`, by the method of batch means (first tenth left out, 20 batches;
/// Student's t with 19 degrees of freedom). Also checks that the interval is
/// narrow enough to be meaningful: at most `precision` x `want` to each side.
pub fn assert_mean(values: &[f64], want: f64, precision: f64) {
    const BATCHES: usize = 20;
    const T: f64 = 3.883;
    let steady = &values[values.len() / 10..];
    let batches = steady.chunks_exact(steady.len() / BATCHES).take(BATCHES);
    let means: Vec<f64> = batches.map(mean).collect();
    let all = mean(&means);
    let variance = means.iter().map(|one| (one - all).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    let half = T * (variance / BATCHES as f64).sqrt();
    assert!(
        (all - want).abs() <= half,
        "mean {all} +- {half}, want {want}"
    );
    assert!(
        half <= precision * want,
        "+- {half} is too wide to test {want}"
    );
}
