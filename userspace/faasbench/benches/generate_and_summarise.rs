//! How long it takes to generate and to summarise a paper-size workload.

use criterion::{criterion_group, criterion_main, Criterion};
use faasbench::result::{Exit, Record};
use faasbench::scheduler::Status;
use faasbench::summary::{summarise, SchedulerInfo, Setting};
use faasbench::trace::{Invocation, Trace};
use faasbench::workload::table1::Table1;
use faasbench::workload::{generate, Amount};
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
    }
}

fn benchmarks(criterion: &mut Criterion) {
    let table1 = Table1 { scale: 1.0 };
    criterion.bench_function("generate 10,000 invocations", |bencher| {
        bencher.iter(|| generate(black_box(&table1), black_box(AMOUNT)));
    });
    let trace = Trace {
        name: "bench".into(),
        sha256: String::new(),
        invocations: generate(&table1, AMOUNT),
    };
    let records: Vec<Record> = trace.invocations.iter().enumerate().map(alone).collect();
    let setting = setting();
    criterion.bench_function("summarise 10,000 invocations", |bencher| {
        bencher.iter(|| summarise(black_box(&trace), black_box(&records), &setting, &[]));
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
