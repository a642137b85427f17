//! Benchmark: hints read and written per second.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use sfs_hint::{encode, hints, Datagram, Form, Hint};

const FORMS: [(&str, Form); 2] = [("text", Form::Text), ("binary", Form::Binary)];

/// Hints with all fields.
fn some_hints(count: i32) -> Vec<Hint> {
    (0..count)
        .map(|i| Hint {
            pid: 1000 + i,
            arrived_at_ns: Some(86_400_000_123_000 + u64::from(i.unsigned_abs()) * 10_000),
            function: Some(format!("resize-{}", i % 7)),
            service_ns: Some(12_000_000),
            started_ticks: Some(530_081),
        })
        .collect()
}

fn decoding(c: &mut Criterion) {
    for (name, form) in FORMS {
        let mut group = c.benchmark_group(format!("decode/{name}"));
        for count in [1, 20] {
            let datagram = encode(&some_hints(count), form).expect("valid hints");
            group.throughput(Throughput::Elements(count.unsigned_abs().into()));
            group.bench_function(format!("{count} a datagram"), |b| {
                b.iter(|| {
                    for hint in hints(black_box(&datagram)) {
                        black_box(hint).expect("valid hint");
                    }
                });
            });
        }
        group.finish();
    }
}

fn refusing(c: &mut Criterion) {
    let noise = b"pid=1234 arrival=86400000123 function=resize\n".repeat(20);
    let mut group = c.benchmark_group("decode/malformed");
    group.throughput(Throughput::Elements(20));
    group.bench_function("20 a datagram", |b| {
        b.iter(|| hints(black_box(&noise)).filter(Result::is_err).count());
    });
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let all = some_hints(20);
    for (name, form) in FORMS {
        let mut group = c.benchmark_group(format!("encode/{name}"));
        group.throughput(Throughput::Elements(20));
        let mut datagram = Datagram::new(form);
        group.bench_function("20 a datagram", |b| {
            b.iter(|| {
                datagram.clear();
                for hint in black_box(&all) {
                    datagram.push(hint).expect("valid hint");
                }
                datagram.bytes().len()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, decoding, refusing, encoding);
criterion_main!(benches);
