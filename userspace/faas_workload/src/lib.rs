//! Makes traces: generates workloads from a distribution of durations, an
//! arrival process, a set of functions and a share of I/O, and
//! [converts](convert) published workloads. Owns the workloads of the papers: of
//! SFS ([`table1`], [`fib`], [`openlambda`]), Hermes ([`hermes`]), FaaSched
//! ([`applications`]) and the thesis about fc-microbenchmark ([`thesis`]).
//!
//! The same options give the same bytes on every machine: random numbers come
//! from ChaCha8, and logarithms from `libm` instead of the machine's C library.
//! Durations, functions, I/O and bursts have separate streams, so that one
//! option changes only its own part.

pub mod applications;
pub mod arrivals;
pub mod convert;
pub mod distribution;
pub mod fib;
pub mod files;
pub mod functions;
pub mod hermes;
pub mod io;
pub mod jitter;
pub mod kinds;
pub mod openlambda;
pub mod random;
pub mod table1;
pub mod thesis;

use anyhow::{bail, Result};
use arrivals::{Arrivals, Process, Spikes};
use faas_data::input::MAX_US;
use faas_data::trace::{offered_load, Class, Invocation, Phase};
use io::Io;
use random::Random;
use std::collections::HashMap;

/// Maximum number of invocations of a workload: as many as the replay has room
/// for, and far more than one machine serves in a benchmark.
pub const MAX_INVOCATIONS: u32 = 1_000_000;

/// Maximum service time and maximum time blocked of one invocation, in
/// microseconds: eleven days. Two of them fit into a row of a trace.
pub const MAX_SERVICE_US: u64 = 1_000_000_000_000;

/// The streams of random numbers of one seed, see [`Random::stream`]. Stream 0
/// is for the durations.
pub mod stream {
    /// Typical durations of functions.
    pub const FUNCTIONS: u64 = 1;
    /// Which invocations block, and for how long.
    pub const IO: u64 = 2;
    /// When a burst begins and ends.
    pub const BURSTS: u64 = 3;
    /// Which application an invocation belongs to.
    pub const APPLICATION: u64 = 4;
    /// Samples of Azure's files, and arrivals within their minutes.
    pub const AZURE: u64 = 5;
    /// By how much arrivals are moved.
    pub const JITTER: u64 = 6;
}

/// A distribution of durations, and its functions.
pub trait Durations {
    /// The mean service time in microseconds, computed, not sampled.
    fn mean_us(&self) -> f64;
    /// Draws a function's name and a service time in microseconds (1 or more).
    fn draw(&self, random: &mut Random) -> (String, u64);
    /// The class of that function, if the functions have classes.
    fn class(&self, _function: &str) -> Option<Class> {
        None
    }
    /// The load that the workload offers to this number of CPUs at its source's
    /// own rate, if it has one.
    fn own_load(&self, _cpus: u32) -> Option<f64> {
        None
    }
}

/// The size of a workload.
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

/// The parts of a workload.
#[derive(Clone)]
pub struct Workload<'a> {
    /// The durations, and the functions that have them.
    pub durations: &'a dyn Durations,
    /// How invocations arrive.
    pub arrivals: Arrivals,
    /// Groups that arrive together.
    pub spikes: Option<Spikes>,
    /// Which invocations block.
    pub io: Option<Io>,
    /// Functions whose mean service time in this workload is up to this many
    /// microseconds are latency-sensitive, the others latency-tolerant.
    pub class_split_us: Option<u64>,
    /// Mean service time to scale the sample to, in microseconds (1 or more);
    /// `None`: unscaled.
    pub mean_us: Option<f64>,
}

impl<'a> Workload<'a> {
    /// Poisson arrivals, no I/O, no classes.
    pub fn new(durations: &'a dyn Durations) -> Self {
        Self {
            durations,
            arrivals: Arrivals::Poisson,
            spikes: None,
            io: None,
            class_split_us: None,
            mean_us: None,
        }
    }

    /// Makes a workload that offers the requested load.
    ///
    /// Arrivals are drawn at the rate load x CPUs / mean service time. All
    /// times are then multiplied by one factor so that the sample itself offers
    /// that load. Without this, 400 invocations of a skewed distribution with a
    /// requested load of 1.0 offer 0.84 to 1.23 (seeds 1 to 60), and results at
    /// one load say little about another. A single invocation, which offers no
    /// load over time, stays as drawn.
    ///
    /// # Errors
    /// If the spikes are larger than the workload, or the last arrival would be
    /// after [`MAX_US`].
    pub fn make(&self, amount: Amount) -> Result<Vec<Invocation>> {
        if let Some(spikes) = self.spikes.filter(|spikes| !spikes.fit(amount.invocations)) {
            bail!(
                "{} spikes of {} invocations do not fit into {} invocations, with one left between two of them",
                spikes.count, spikes.invocations, amount.invocations
            );
        }
        let mut invocations = self.draw(amount);
        // Also checked before stretching, which does not restore arrivals that
        // were moved to the limit.
        let drawn_in_time = in_time(&invocations);
        if let Some(mean_us) = self.mean_us {
            scale_to_mean(&mut invocations, mean_us);
        }
        if let Some(split_us) = self.class_split_us {
            classify(&mut invocations, split_us);
        }
        stretch_to(&mut invocations, amount.load, amount.cpus);
        if !drawn_in_time || !in_time(&invocations) {
            bail!("the workload would last longer than 115 days: want a higher load, a lower scale or fewer invocations");
        }
        Ok(invocations)
    }

    /// The invocations with their arrivals as drawn.
    fn draw(&self, amount: Amount) -> Vec<Invocation> {
        let mut random = Random::new(amount.seed);
        let mut io_random = Random::stream(amount.seed, stream::IO);
        let mut arrivals = Process::new(
            &self.arrivals,
            self.spikes,
            amount.invocations,
            self.durations.mean_us() / (amount.load * f64::from(amount.cpus)),
            Random::stream(amount.seed, stream::BURSTS),
        );
        let make = |_| {
            let arrival_us = arrivals.next(random.exponential(1.0));
            let (function, service_us) = self.durations.draw(&mut random);
            let class = self.durations.class(&function);
            let mut one = Invocation::cpu(arrival_us, function, service_us);
            one.class = class;
            if let Some(io) = &self.io {
                one.phases = io.phases(service_us, &mut io_random);
            }
            one
        };
        (0..amount.invocations).map(make).collect()
    }
}

/// Makes a workload with Poisson arrivals like [`Workload::make`], except that
/// arrivals after [`MAX_US`] are moved there.
pub fn generate(durations: &impl Durations, amount: Amount) -> Vec<Invocation> {
    let mut invocations = Workload::new(durations).draw(amount);
    stretch_to(&mut invocations, amount.load, amount.cpus);
    invocations
}

/// Multiplies all arrivals by one factor, so that they offer `load` (above 0)
/// to `cpus` CPUs, up to rounding to microseconds. Invocations that all arrive
/// at once stay unchanged.
pub fn stretch_to(invocations: &mut [Invocation], load: f64, cpus: u32) {
    let Some(drawn) = offered_load(invocations, cpus) else {
        return;
    };
    let factor = drawn / load;
    for one in invocations {
        one.arrival_us = ((one.arrival_us as f64 * factor).round() as u64).min(MAX_US);
    }
}

/// Multiplies all times of CPU and I/O by one factor, so that the mean service
/// time becomes `mean_us` microseconds, up to rounding to microseconds (at
/// least 1 for each phase) and the limit of [`MAX_SERVICE_US`].
pub fn scale_to_mean(invocations: &mut [Invocation], mean_us: f64) {
    let sum: f64 = invocations.iter().map(|one| one.service_us() as f64).sum();
    let factor = mean_us * invocations.len() as f64 / sum;
    let scaled = |us: u64| service_us(us as f64 * factor);
    for one in invocations {
        for phase in &mut one.phases {
            match phase {
                Phase::Cpu { us, .. } | Phase::Io { us, .. } => *us = scaled(*us),
            }
        }
    }
}

/// Whether no arrival had to be moved to [`MAX_US`].
pub fn in_time(invocations: &[Invocation]) -> bool {
    invocations
        .last()
        .is_none_or(|last| last.arrival_us < MAX_US)
}

/// Rounds a service time to whole microseconds, 1 to [`MAX_SERVICE_US`].
pub fn service_us(us: f64) -> u64 {
    (us.round() as u64).clamp(1, MAX_SERVICE_US)
}

/// Gives all invocations of a function its class, by its mean service time.
fn classify(invocations: &mut [Invocation], split_us: u64) {
    let mut sums: HashMap<String, (u128, u128)> = HashMap::new();
    for one in invocations.iter() {
        let service_us = u128::from(one.service_us());
        // Clone a key once per function, not per invocation.
        match sums.get_mut(&one.function) {
            Some((sum, count)) => (*sum, *count) = (*sum + service_us, *count + 1),
            None => {
                sums.insert(one.function.clone(), (service_us, 1));
            }
        }
    }
    for one in invocations {
        let (sum, count) = sums[&one.function];
        let short = sum <= count * u128::from(split_us);
        one.class = Some(if short { Class::Ls } else { Class::Ld });
    }
}

/// One line on the load that a workload really offers. It differs a little from
/// the requested load: times are rounded to microseconds, and a trace may keep
/// its arrivals.
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

#[cfg(test)]
mod tests;
