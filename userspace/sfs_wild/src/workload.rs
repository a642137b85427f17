//! A random workload. The same seed gives the same bytes on every machine, hence `libm`.

use faas_data::trace::{Invocation, Phase};
use faas_workload::random::Random;
use sfs_lab::bench::settings::Sandbox;

/// Most invocations.
const MOST: usize = 3000;
/// Mean of a sleep, us.
const SLEEP_US: f64 = 20_000.0;

/// What is drawn from a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// In order of arrival.
    pub trace: Vec<Invocation>,
    /// CPUs of the machine.
    pub cpus: u32,
    /// What serves the invocations.
    pub sandbox: Sandbox,
    /// More options of `faasbench run` for that.
    pub options: &'static str,
    /// What it is, in a few words.
    pub about: String,
}

/// How the service times of one function differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    None,
    Narrow,
    Wide,
    Exponential,
    TwoModes,
    HeavyTail,
    Drift,
}

const SPREADS: [Spread; 7] = [
    Spread::None,
    Spread::Narrow,
    Spread::Wide,
    Spread::Exponential,
    Spread::TwoModes,
    Spread::HeavyTail,
    Spread::Drift,
];

/// How invocations arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrivals {
    Poisson,
    Bursts,
    Pauses,
    Batches(usize),
    Ramp,
    HeavyTail,
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len())]
}

/// Log-normal with median 1 and this standard deviation of the logarithm.
fn log_normal(random: &mut Random, sigma: f64) -> f64 {
    libm::exp(sigma * random.normal())
}

/// Pareto from 1 up, with this index.
fn pareto(random: &mut Random, index: f64) -> f64 {
    libm::pow(1.0 - random.unit(), -1.0 / index)
}

impl Spread {
    /// A factor for a function's typical time; `done`: the part of the workload that has arrived.
    fn factor(self, random: &mut Random, done: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Narrow => log_normal(random, 0.2),
            Self::Wide => log_normal(random, 1.5),
            Self::Exponential => random.exponential(1.0),
            Self::TwoModes if random.unit() < 0.85 => 0.3,
            Self::TwoModes => 5.0,
            Self::HeavyTail => 0.4 * pareto(random, 1.2).min(200.0),
            Self::Drift => (1.0 + 6.0 * done) * log_normal(random, 0.3),
        }
    }
}

impl Arrivals {
    fn draw(random: &mut Random) -> Self {
        let batch = one_of(random, &[10, 40, 100]);
        let all = [
            Self::Poisson,
            Self::Bursts,
            Self::Pauses,
            Self::Batches(batch),
            Self::Ramp,
            Self::HeavyTail,
        ];
        one_of(random, &all)
    }

    /// The times between `count` arrivals, in any unit.
    fn gaps(self, random: &mut Random, count: usize) -> Vec<f64> {
        let mut in_burst = false;
        let gap = |number: usize| match self {
            Self::Poisson => random.exponential(1.0),
            Self::Bursts => {
                in_burst ^= random.unit() < 0.01;
                random.exponential(if in_burst { 0.05 } else { 1.7 })
            }
            Self::Pauses if random.unit() < 0.01 => 30.0,
            Self::Pauses => random.exponential(0.2),
            Self::Batches(size) if number.is_multiple_of(size) => size as f64,
            Self::Batches(_) => 0.0001,
            Self::Ramp => random.exponential(1.0 / (0.3 + 3.0 * number as f64 / count as f64)),
            Self::HeavyTail => pareto(random, 1.1).min(200.0),
        };
        (0..count).map(gap).collect()
    }
}

/// Functions with typical times, us, how these differ, and how often each is invoked.
struct Functions {
    of_all: Vec<(f64, Spread)>,
    popularity: Vec<f64>,
    longest_us: f64,
}

impl Functions {
    fn draw(random: &mut Random) -> Self {
        let count = one_of(random, &[1, 3, 10, 30, 100, 300]);
        let (median, sigma) = (
            one_of(random, &[1.5, 5.0, 20.0, 80.0, 200.0]),
            one_of(random, &[0.5, 1.2, 2.0]),
        );
        let common = (random.unit() < 0.85).then(|| one_of(random, &SPREADS));
        let of_all = (0..count)
            .map(|_| {
                let spread = common.unwrap_or_else(|| one_of(random, &SPREADS));
                (1000.0 * median * log_normal(random, sigma), spread)
            })
            .collect();
        let zipf = one_of(random, &[0.0, 0.8, 1.3]);
        let mut sum = 0.0;
        let popularity = (0..count).map(|rank| {
            sum += libm::pow(f64::from(rank + 1), -zipf);
            sum
        });
        Self {
            of_all,
            popularity: popularity.collect(),
            longest_us: one_of(random, &[0.5e6, 2e6, 5e6]),
        }
    }

    /// The number of a function, and a service time, us.
    fn invoke(&self, random: &mut Random, done: f64) -> (usize, u64) {
        let all = self.popularity.last().copied().unwrap_or_default();
        let place = random.uniform(0.0, all);
        let last = self.of_all.len() - 1;
        let function = self
            .popularity
            .partition_point(|&sum| sum <= place)
            .min(last);
        let (typical, spread) = self.of_all[function];
        let us = typical * spread.factor(random, done);
        (function, us.clamp(200.0, self.longest_us) as u64)
    }
}

/// The phases of an invocation; `sleeps`: how many of all sleep.
fn phases(random: &mut Random, service_us: u64, sleeps: f64) -> Vec<Phase> {
    if random.unit() >= sleeps {
        return vec![Phase::cpu(service_us)];
    }
    let pieces = one_of(random, &[1, 2, 4]);
    let first = usize::from(random.unit() < 0.3);
    let all = (0..pieces).flat_map(|_| {
        let sleep = random.exponential(SLEEP_US) as u64 + 100;
        [Phase::io(sleep), Phase::cpu((service_us / pieces).max(100))]
    });
    all.skip(first).collect()
}

/// The workload of this seed.
pub fn draw(seed: u64) -> Workload {
    let random = &mut Random::new(seed);
    let cpus = one_of(random, &[1, 2, 4, 4, 4, 8]);
    let load = one_of(random, &[0.5, 0.8, 0.9, 1.0, 1.0, 1.1, 1.3]);
    let (functions, arrivals) = (Functions::draw(random), Arrivals::draw(random));
    let whole_us = one_of(random, &[8e6, 15e6, 20e6]);
    let sleeps = one_of(random, &[0.0, 0.0, 0.3, 0.8]);
    let (sandbox, options) = one_of(
        random,
        &[
            (Sandbox::Process, ""),
            (Sandbox::Process, ""),
            (Sandbox::Warm, ""),
            (Sandbox::Cgroup, ""),
            (Sandbox::Cgroup, "--handler fork"),
            (Sandbox::Cgroup, "--cgroup-layout nested"),
        ],
    );
    let (mut served_us, mut invoked) = (0.0, Vec::new());
    while served_us < whole_us && invoked.len() < MOST {
        let one = functions.invoke(random, served_us / whole_us);
        served_us += one.1 as f64;
        invoked.push(one);
    }
    let gaps = arrivals.gaps(random, invoked.len());
    let stretch = served_us / f64::from(cpus) / load / gaps.iter().sum::<f64>();
    let mut at = 0.0;
    let trace = invoked
        .iter()
        .zip(gaps)
        .map(|(&(function, service_us), gap)| {
            at += gap * stretch;
            let mut one = Invocation::cpu(at as u64, format!("f{function}"), service_us);
            one.phases = phases(random, service_us, sleeps);
            one
        });
    let trace: Vec<Invocation> = trace.collect();
    let about = format!(
        "{} of {} functions, {cpus} CPUs, load {load}, {arrivals:?}, {:?}, {:.0} % sleep, {} {options}",
        trace.len(),
        functions.of_all.len(),
        functions.of_all[0].1,
        100.0 * sleeps,
        sandbox.name(),
    );
    Workload {
        trace,
        cpus,
        sandbox,
        options,
        about: about.trim_end().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::trace::offered_load;

    #[test]
    fn a_seed_determines_the_workload() {
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).trace, draw(8).trace);
    }

    #[test]
    fn workloads_are_traces_of_a_bounded_size_and_load() {
        for seed in 1..=200 {
            let one = draw(seed);
            let about = format!("seed {seed}: {}", one.about);
            assert!((1..=MOST).contains(&one.trace.len()), "{about}");
            let in_order = |pair: &[Invocation]| pair[0].arrival_us <= pair[1].arrival_us;
            assert!(one.trace.windows(2).all(in_order), "{about}");
            let served: u64 = one.trace.iter().map(Invocation::service_us).sum();
            // The last one may be 5 s long.
            assert!(served < 26_000_000, "{about}: {served} us");
            if one.trace.len() > 100 {
                let load = offered_load(&one.trace, one.cpus).unwrap();
                assert!((0.4..4.0).contains(&load), "{about}: {load}");
            }
        }
    }

    #[test]
    fn each_kind_is_drawn() {
        let all: Vec<Workload> = (1..=200).map(draw).collect();
        let kinds = [
            "Poisson", "Bursts", "Pauses", "Batches", "Ramp", "Drift", "TwoModes", "nested",
        ];
        for kind in kinds {
            assert!(all.iter().any(|one| one.about.contains(kind)), "{kind}");
        }
    }
}
