//! //! Benchmark: invocations simulated per second of real time, by policy.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use faas_data::trace::Invocation;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sfs_sim::policy::{Kind, Settings};
use std::hint::black_box;

const INVOCATIONS: u64 = 100_000;
const CPUS: u32 = 12;

/// Poisson arrivals at load 0.95; five in six need 13 to 346 ms, one 1425 to
/// 2344 ms.
fn trace() -> Vec<Invocation> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut unit = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut now_us = 0.0;
    let mut draw = |_| {
        let (low, high) = match unit() {
            short if short < 5.0 / 6.0 => (13e3, 346e3),
            _ => (1425e3, 2344e3),
        };
        now_us += -(1.0 - unit()).ln() * 463_670.0 / (0.95 * f64::from(CPUS));
        let service_us = low + unit() * (high - low);
        Invocation::cpu(now_us as u64, "f", service_us as u64)
    };
    (0..INVOCATIONS).map(&mut draw).collect()
}

fn policies(criterion: &mut Criterion) {
    let trace = trace();
    let settings = Settings::new(CPUS);
    let mut group = criterion.benchmark_group("simulate");
    group.throughput(Throughput::Elements(INVOCATIONS));
    group.sample_size(10);
    for kind in Kind::ALL {
        group.bench_function(kind.name(), |bencher| {
            bencher.iter(|| sfs_sim::simulate(black_box(&trace), kind, &settings));
        });
    }
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);
