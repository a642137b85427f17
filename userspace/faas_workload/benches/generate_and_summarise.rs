//! Benchmark: invocations generated and summarised per second, at the paper's
//! size of 10,000.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use faas_data::result::{Exit, Record};
use faas_data::summary::Status;
use faas_data::summary::{summarise, SchedulerInfo, Setting};
use faas_data::trace::{Invocation, Trace};
use faas_workload::arrivals::{Arrivals, Bursts};
use faas_workload::distribution::{ByDuration, Distribution, Lognormal};
use faas_workload::functions::{Functions, Popularity};
use faas_workload::io::{Io, Place};
use faas_workload::random::Random;
use faas_workload::table1::{Table1, Version};
use faas_workload::{generate, Amount, Workload};
use std::hint::black_box;

const AMOUNT: Amount = Amount {
    invocations: 10_000,
    load: 1.0,
    cpus: 12,
    seed: 1,
};

fn setting() -> Setting {
    Setting {
        cpus: AMOUNT.cpus,
        scheduler: SchedulerInfo {
            name: "bench".into(),
            version: String::new(),
            args: String::new(),
            status: Status::Ok,
            detail: String::new(),
        },
        kernel: String::new(),
        accel: String::new(),
        sandbox: None,
    }
}

/// A record as if the invocation had been alone on the machine.
fn alone((id, invocation): (usize, &Invocation)) -> Record {
    Record {
        id,
        function: invocation.function.clone(),
        arrival_us: invocation.arrival_us,
        start_us: Some(invocation.arrival_us),
        end_us: Some(invocation.arrival_us + invocation.service_us()),
        cpu_us: invocation.service_us(),
        service_us: invocation.service_us(),
        voluntary_switches: 1,
        involuntary_switches: 0,
        exit: Exit::Code(0),
        runqueue_wait_us: None,
        alone_us: None,
    }
}

fn lognormal() -> Distribution {
    let azure = Lognormal::new(Lognormal::MU, Lognormal::SIGMA, 0.0, f64::INFINITY);
    Distribution::Lognormal(azure.expect("it has no limits"))
}

/// The cheapest and the most expensive workload besides Table I.
fn generators(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.throughput(Throughput::Elements(AMOUNT.invocations as u64));
    let lognormal_only = ByDuration {
        distribution: lognormal(),
        scale: 1.0,
    };
    let plain = Workload::new(&lognormal_only);
    group.bench_function("log-normal", |bencher| {
        bencher.iter(|| black_box(&plain).make(black_box(AMOUNT)));
    });
    let functions = Functions::new(
        1000,
        Popularity::Zipf(1.0),
        &lognormal(),
        1.0,
        1.0,
        Random::new(AMOUNT.seed),
    );
    let everything = Workload {
        durations: &functions,
        arrivals: Arrivals::Bursty(Bursts::default()),
        spikes: None,
        io: Some(Io {
            share: 0.75,
            low_us: 10e3,
            high_us: 100e3,
            place: Place::Several,
        }),
        class_split_us: Some(100_000),
        mean_us: None,
    };
    group.bench_function("bursty and blocking", |bencher| {
        bencher.iter(|| black_box(&everything).make(black_box(AMOUNT)));
    });
    group.finish();
}

fn benchmarks(criterion: &mut Criterion) {
    let table1 = Table1 {
        version: Version::Artefact,
        scale: 1.0,
    };
    let mut group = criterion.benchmark_group("10,000 invocations");
    group.throughput(Throughput::Elements(AMOUNT.invocations as u64));
    group.bench_function("generate Table I", |bencher| {
        bencher.iter(|| generate(black_box(&table1), black_box(AMOUNT)));
    });
    let trace = Trace {
        name: "bench".into(),
        sha256: String::new(),
        invocations: generate(&table1, AMOUNT),
    };
    let records: Vec<Record> = trace.invocations.iter().enumerate().map(alone).collect();
    let setting = setting();
    group.bench_function("summarise", |bencher| {
        bencher.iter(|| summarise(black_box(&trace), black_box(&records), &setting, &[]));
    });
    group.finish();
}

criterion_group!(benches, generators, benchmarks);
criterion_main!(benches);
