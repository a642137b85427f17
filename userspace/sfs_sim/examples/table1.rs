//! Table I of the SFS paper by its artefact's list (`faasbench gen
//! table1-artefact`) under every policy, beside the figures of another
//! simulator (another generator, another seed).
//!
//! 10,000 invocations on 12 CPUs at offered load 1.0, ten seeds. At load 1.0
//! there is no steady state, so turnarounds vary much between seeds.
//!
//! ```text
//! cargo run --release -p sfs_sim --example table1
//! ```

use faas_data::measure::shortest;
use faas_data::stats::mean;
use faas_data::trace::Invocation;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sfs_sim::policy::{Kind, Settings};
use sfs_sim::simulate;

const INVOCATIONS: usize = 10_000;
const CPUS: u32 = 12;
const SEEDS: u64 = 10;

/// Shortest and longest duration in ms, and share in per cent of 94.5.
const CLASSES: [(f64, f64, f64); 5] = [
    (13.0, 42.0, 40.6),
    (60.0, 90.0, 9.9),
    (140.0, 140.0, 7.3),
    (220.0, 346.0, 22.2),
    (1425.0, 2344.0, 14.5),
];

/// Mean turnaround in ms of all, the shortest 83 % and the others, as
/// published.
const GIVEN: [(Kind, [f64; 3]); 4] = [
    (Kind::Ps, [1521.0, 416.0, 6912.0]),
    (Kind::Sfs, [1498.0, 119.0, 8228.0]),
    (Kind::Gittins, [1017.0, 119.0, 5405.0]),
    (Kind::Srtf, [828.0, 119.0, 4291.0]),
];

fn trace(seed: u64) -> Vec<Invocation> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut unit = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut now = 0.0;
    let mut draw = |_| {
        now -= (1.0 - unit()).ln();
        let point = unit() * 94.5;
        let ends = CLASSES.iter().scan(0.0, |end, class| {
            *end += class.2;
            Some(*end)
        });
        let class = ends.take_while(|end| *end < point).count().min(4);
        let (low, high, _) = CLASSES[class];
        (now, ((low + unit() * (high - low)) * 1e3).round())
    };
    let drawn: Vec<(f64, f64)> = (0..INVOCATIONS).map(&mut draw).collect();
    // Stretched so that the sample itself offers load 1.0.
    let service: f64 = drawn.iter().map(|(_, service)| service).sum();
    let span = drawn[INVOCATIONS - 1].0 - drawn[0].0;
    let unit_us = service / f64::from(CPUS) / span;
    let invocation = |(at, service): (f64, f64)| {
        Invocation::cpu((at * unit_us).round() as u64, "f", service as u64)
    };
    drawn.into_iter().map(invocation).collect()
}

/// Mean turnaround in ms of all, the shortest 83 % by service time, the others.
fn turnarounds(trace: &[Invocation], kind: Kind) -> [f64; 3] {
    let outcomes = simulate(trace, kind, &Settings::new(CPUS)).expect("a small trace");
    let short = shortest(trace);
    let mean_of = |keep: &dyn Fn(usize) -> bool| {
        let kept = outcomes.iter().enumerate().filter(|(id, _)| keep(*id));
        let values: Vec<f64> = kept
            .map(|(id, outcome)| (outcome.end_us() - trace[id].arrival_us) as f64 / 1e3)
            .collect();
        mean(&values).unwrap_or(f64::NAN)
    };
    [
        mean_of(&|_| true),
        mean_of(&|id| short[id]),
        mean_of(&|id| !short[id]),
    ]
}

fn main() {
    println!("mean turnaround, ms: mean of {SEEDS} seeds (lowest to highest); given");
    println!("{:14}{:>28}{:>28}{:>28}", "", "all", "short", "long");
    let traces: Vec<Vec<Invocation>> = (1..=SEEDS).map(trace).collect();
    for kind in Kind::ALL {
        let found: Vec<[f64; 3]> = traces.iter().map(|one| turnarounds(one, kind)).collect();
        let given = GIVEN.iter().find(|(other, _)| *other == kind);
        print!("{:14}", kind.name());
        for group in 0..3 {
            let values = || found.iter().map(|means| means[group]);
            let mean = values().sum::<f64>() / SEEDS as f64;
            let (low, high) = (
                values().fold(f64::MAX, f64::min),
                values().fold(0.0, f64::max),
            );
            let given = given.map_or("-".into(), |(_, given)| given[group].to_string());
            print!(
                "{:>28}",
                format!("{mean:.0} ({low:.0} to {high:.0}); {given}")
            );
        }
        println!();
    }
}
