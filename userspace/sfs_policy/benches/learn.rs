//! Benchmark: the cost of learning in the loader.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use sfs_policy::learn::buckets::BUCKETS;
use sfs_policy::learn::rank::{ranks, Aim};
use sfs_policy::learn::{LearnConfig, Learner};
use std::hint::black_box;

const BATCH: u64 = 100_000;

/// Completions of `functions` functions, each around its own duration from 1 ms
/// to some seconds.
fn completions(functions: u64) -> Vec<(u64, u64)> {
    let mut random = 1u64;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random >> 33
    };
    let completion = |_| {
        let function = next() % functions;
        let usual = 1_000_000 << (function % 12);
        (function, usual + next() % usual)
    };
    (0..BATCH).map(completion).collect()
}

fn learned(functions: u64) -> Learner {
    let mut learner = Learner::new(LearnConfig::default());
    for (function, ns) in completions(functions) {
        learner.on_completion(function, ns);
    }
    learner
}

fn learn(c: &mut Criterion) {
    let mut group = c.benchmark_group("100000 completions");
    group.throughput(Throughput::Elements(BATCH));
    group.sample_size(20);
    for functions in [100, 10_000, 1_000_000] {
        let completions = completions(functions);
        let mut learner = learned(functions);
        group.bench_function(format!("of {functions} functions"), |b| {
            b.iter(|| {
                for (function, ns) in black_box(&completions) {
                    learner.on_completion(*function, *ns);
                }
            });
        });
    }
    group.finish();
}

fn tables(c: &mut Criterion) {
    let mass: [f64; BUCKETS] = std::array::from_fn(|bucket| ((bucket * 7) % 13) as f64);
    c.bench_function("ranks of one distribution", |b| {
        b.iter(|| ranks(black_box(&mass), Aim::Both));
    });
    let learner = learned(10_000);
    let mut group = c.benchmark_group("10000 functions");
    group.sample_size(20);
    group.bench_function("first tables", |b| {
        b.iter_batched_ref(|| learner.clone(), Learner::refresh, BatchSize::LargeInput);
    });
    group.bench_function("encode", |b| b.iter(|| learner.encode()));
    let bytes = learner.encode();
    group.bench_function("decode", |b| {
        b.iter(|| Learner::decode(LearnConfig::default(), black_box(&bytes)));
    });
    group.finish();
}

criterion_group!(benches, learn, tables);
criterion_main!(benches);
