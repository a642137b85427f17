//! Generators: workloads made from a distribution of durations and a process
//! of arrivals.
//!
//! The same options make the same bytes on every machine: random numbers come
//! from ChaCha8, and logarithms from `libm`'s own code instead of the
//! machine's C library.

pub mod arrivals;
pub mod random;
pub mod table1;

use crate::input::MAX_US;
use crate::trace::{offered_load, Invocation};
use random::Random;

/// Most invocations that a workload may have: as many as the replay has room
/// for, and far more than one machine serves in a benchmark.
pub const MAX_INVOCATIONS: u32 = 1_000_000;

/// A distribution of durations, and the functions that have them.
pub trait Durations {
    /// The mean service time in microseconds, computed, not sampled.
    fn mean_us(&self) -> f64;
    /// Draws a function's name and a service time in microseconds (1 or more).
    fn draw(&self, random: &mut Random) -> (String, u64);
}

/// How much of a workload to make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    /// Number of invocations, 1 to [`MAX_INVOCATIONS`].
    pub invocations: u32,
    /// Load to offer, as a share of the capacity of `cpus`: 1.0 is all of it.
    pub load: f64,
    /// Number of CPUs that the load refers to.
    pub cpus: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Makes a workload with Poisson arrivals that offers the load asked for.
///
/// Arrivals are drawn at the rate load x CPUs / mean service time, and all times
/// are then multiplied by one factor so that the sample offers that load itself.
/// Without it 400 invocations of a skewed distribution, asked for load 1.0, offer
/// 0.84 to 1.23 (seeds 1 to 60), and what a scheduler does at the one says little
/// about the other. A single invocation, which offers no load over time, stays as drawn.
pub fn generate(durations: &impl Durations, amount: Amount) -> Vec<Invocation> {
    let mut random = Random::new(amount.seed);
    let mean_gap_us = durations.mean_us() / (amount.load * f64::from(amount.cpus));
    let mut arrivals = arrivals::Poisson::new(mean_gap_us);
    let make = |_| {
        let arrival_us = arrivals.next(&mut random);
        let (function, service_us) = durations.draw(&mut random);
        Invocation::cpu(arrival_us, function, service_us)
    };
    let mut invocations: Vec<Invocation> = (0..amount.invocations).map(make).collect();
    if let Some(drawn) = offered_load(&invocations, amount.cpus) {
        stretch(&mut invocations, drawn / amount.load);
    }
    invocations
}

/// Multiplies all arrival times by `factor`.
fn stretch(invocations: &mut [Invocation], factor: f64) {
    for one in invocations {
        one.arrival_us = ((one.arrival_us as f64 * factor).round() as u64).min(MAX_US);
    }
}

/// One line on what a workload really offers: rounding to microseconds, and a
/// trace's own arrivals, leave it a little off what was asked for.
pub fn describe(invocations: &[Invocation], cpus: u32) -> String {
    let service: u64 = invocations.iter().map(Invocation::service_us).sum();
    let first = invocations.first().map_or(0, |one| one.arrival_us);
    let last = invocations.last().map_or(0, |one| one.arrival_us);
    let load = match offered_load(invocations, cpus) {
        Some(load) => format!("{load:.3}"),
        None => "undefined (all arrive at once)".to_string(),
    };
    format!(
        "{} invocations in {:.3} s, mean service time {:.3} ms, offered load {load} on {cpus} CPUs",
        invocations.len(),
        (last - first) as f64 / 1e6,
        service as f64 / 1e3 / invocations.len().max(1) as f64,
    )
}
