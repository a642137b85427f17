//! Benchmark: the cost of decisions in the loader.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use sfs_policy::{Config, Controller, IatWindow, OverloadPolicy, SlicePolicy, DEFAULT_WINDOW};

const BATCH: u64 = 10_000;

/// Arrivals about 1 ms apart, every eighth a little late.
fn arrivals() -> Vec<u64> {
    (0..BATCH)
        .map(|i| i * 1_000_000 + (i * 7_919) % 100_000 - (i % 8 / 7) * 2_000_000)
        .collect()
}

fn controller() -> Controller {
    Controller::new(Config {
        window: DEFAULT_WINDOW,
        slice: SlicePolicy::new(1_000_000, 1_000_000_000).expect("valid bounds"),
        initial_slice_ns: 50_000_000,
        overload: Some(OverloadPolicy::default()),
        cpus: 72,
    })
}

fn window(c: &mut Criterion) {
    let arrivals = arrivals();
    let mut full = IatWindow::new(DEFAULT_WINDOW);
    full.extend(arrivals.iter().copied());

    let mut now_ns = BATCH * 1_000_000;
    let mut pushed = full.clone();
    c.bench_function("window/push", |b| {
        b.iter(|| {
            now_ns += 1_000_000;
            pushed.push(black_box(now_ns));
        });
    });
    c.bench_function("window/mean", |b| b.iter(|| black_box(&full).mean_iat_ns()));

    let mut group = c.benchmark_group("batch of 10000");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("window/extend and mean", |b| {
        b.iter_batched_ref(
            || full.clone(),
            |window| {
                window.extend(black_box(&arrivals).iter().copied());
                window.mean_iat_ns()
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("controller/on_arrivals", |b| {
        b.iter_batched_ref(
            controller,
            |controller| controller.on_arrivals(black_box(&arrivals)),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn delay(c: &mut Criterion) {
    let mut controller = controller();
    let mut delay_ns = 0;
    c.bench_function("controller/on_delay", |b| {
        b.iter(|| {
            delay_ns = (delay_ns + 40_000_000) % 200_000_000;
            controller.on_delay(black_box(delay_ns))
        });
    });
}

criterion_group!(benches, window, delay);
criterion_main!(benches);
