//! The workloads W1 to W3 of N.J.L. Boonstra's thesis (Leiden, 2021, Table 3),
//! made like its generator makes them: a Poisson process over an hour, and
//! programs with one of six arguments each.
//!
//! Each invocation is the start of a microVM, which blocks except for
//! [`START_CPU_MS`], and then a program: see [`crate::convert::fc`]. In the
//! published lists each argument has 16.3 to 17.4 % of its program's runs.
//!
//! [`START_CPU_MS`]: crate::convert::fc::START_CPU_MS

use super::convert::fc::{Cost, Costs, Figure, PROGRAMS};
use super::random::Random;
use super::{service_us, Durations};
use faas_data::trace::Invocation;

/// Numbers of the programs in the lists.
const PRIMES: u64 = 0;
const STREAM: u64 = 2;

/// Seconds of a workload.
const HOUR_S: f64 = 3600.0;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// 50,000 that count primes
    W1,
    /// 25,000, three of four count primes, one uses memory
    W2,
    /// 12,500 that use memory
    W3,
}

impl Workload {
    /// Tasks in an hour, and the share of those that count primes (Table 3).
    fn size(self) -> (f64, f64) {
        match self {
            Self::W1 => (50_000.0, 1.0),
            Self::W2 => (25_000.0, 0.75),
            Self::W3 => (12_500.0, 0.0),
        }
    }
}

/// The durations of one of the three.
#[derive(Debug, Clone, PartialEq)]
pub struct Thesis {
    workload: Workload,
    primes: Vec<(String, Cost)>,
    stream: Vec<(String, Cost)>,
    scale: f64,
}

impl Thesis {
    /// The workload with all times multiplied by `scale`.
    pub fn new(workload: Workload, scale: f64) -> Self {
        let costs = Costs::built_in(Figure::StartWaits);
        let programs = |program: u64| {
            let name = PROGRAMS[program as usize];
            let all = costs.of_program(program).into_iter();
            all.map(|(argument, cost)| (format!("{name}-{argument}"), cost))
                .collect()
        };
        Self {
            workload,
            primes: programs(PRIMES),
            stream: programs(STREAM),
            scale,
        }
    }

    /// Puts the start's time blocked in front of each invocation.
    pub fn add_starts(&self, invocations: &mut [Invocation]) {
        for one in invocations {
            let mut all = self.primes.iter().chain(&self.stream);
            if let Some((_, cost)) = all.find(|(name, _)| *name == one.function) {
                one.phases = cost.phases(self.scale);
            }
        }
    }

    /// The rate in invocations per second.
    fn rate(&self) -> f64 {
        self.workload.size().0 / HOUR_S
    }
}

/// Mean CPU time of one program's arguments in milliseconds.
fn mean_ms(programs: &[(String, Cost)]) -> f64 {
    programs.iter().map(|(_, cost)| cost.cpu_ms).sum::<f64>() / programs.len() as f64
}

impl Durations for Thesis {
    fn mean_us(&self) -> f64 {
        let primes = self.workload.size().1;
        let ms = primes * mean_ms(&self.primes) + (1.0 - primes) * mean_ms(&self.stream);
        ms * 1e3 * self.scale
    }

    fn draw(&self, random: &mut Random) -> (String, u64) {
        let programs = match random.unit() < self.workload.size().1 {
            true => &self.primes,
            false => &self.stream,
        };
        let (name, cost) = &programs[random.below(programs.len())];
        (name.clone(), service_us(cost.cpu_ms * 1e3 * self.scale))
    }

    fn own_load(&self, cpus: u32) -> Option<f64> {
        let busy = self.rate() * self.mean_us() / self.scale / 1e6;
        Some(busy / f64::from(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{generate, Amount};
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn w1_uses_the_share_of_the_cpus_that_the_text_has() {
        let w1 = Thesis::new(Workload::W1, 1.0);
        // "the AUC for all schedulers is close to 90 %", 36 cores without SMT
        let load = w1.own_load(36).unwrap();
        assert!((load - 0.9).abs() < 0.001, "{load}");
        let scaled = Thesis::new(Workload::W1, 0.1).own_load(36).unwrap();
        assert!((scaled - load).abs() < 1e-9, "{scaled}");
        let loads = [Workload::W2, Workload::W3].map(|one| Thesis::new(one, 1.0).own_load(36));
        // 25,000 x (535 + 0.75 x 1798.2 + 0.25 x 2423.2) / 3.6 M / 36, and
        // 12,500 x (535 + 2423.2) / 3.6 M / 36
        let want = [0.4801, 0.2853];
        for (load, want) in loads.into_iter().zip(want) {
            assert!((load.unwrap() - want).abs() < 0.0005, "{load:?}");
        }
    }

    #[test]
    fn programs_have_their_shares_and_starts() {
        let w2 = Thesis::new(Workload::W2, 1.0);
        let amount = Amount {
            invocations: 24_000,
            load: w2.own_load(36).unwrap(),
            cpus: 36,
            seed: 1,
        };
        let mut made = generate(&w2, amount);
        let cpu: Vec<u64> = made.iter().map(Invocation::service_us).collect();
        w2.add_starts(&mut made);
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for (one, cpu) in made.iter().zip(cpu) {
            *counts.entry(&one.function).or_default() += 1.0 / 24_000.0;
            assert_eq!(one.service_us(), cpu);
            // 3.5 s of start, of which 535 ms are CPU time
            let blocked = one.uncontended_us() - cpu;
            assert!((2_900_000..3_000_000).contains(&blocked), "{one:?}");
        }
        assert_eq!(counts.len(), 12);
        for (function, share) in counts {
            let want = match function.starts_with("primes") {
                true => 0.75 / 6.0,
                false => 0.25 / 6.0,
            };
            // Three standard errors: 3 x sqrt(0.11 / 24,000) = 0.0064
            assert!((share - want).abs() < 0.0064, "{function}: {share}");
        }
    }
}
