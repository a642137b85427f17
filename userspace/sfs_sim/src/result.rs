//! Results as faasbench reads them: CSV, one row for each invocation.
//!
//! `start_us` is when an invocation first had a CPU or a share of one; if it
//! begins with I/O, when that began. `cpu_us` is `service_us`: nothing costs
//! anything. `voluntary_switches` says how often it blocked,
//! `involuntary_switches` how often it was preempted: how often it lost its CPU
//! under `srtf`, `gittins`, `las` (where sharing with equals is no preemption)
//! and the policies by rank, its demotion under `sfs`, and 0 under `ideal`, `ps`
//! and `fifo`.
//! Times are rounded down to whole microseconds. `exit` is 0.

use crate::engine::Outcome;
use crate::trace::Invocation;
use std::fmt::Write;

const HEADER: &str = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,\
                      voluntary_switches,involuntary_switches,exit";

/// The text of the result of `trace`.
pub fn to_csv(trace: &[Invocation], outcomes: &[Outcome]) -> String {
    let mut text = format!("{HEADER}\n");
    for (id, (one, outcome)) in trace.iter().zip(outcomes).enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{id},{},{},{},{},{service},{service},{},{},0",
            one.function,
            one.arrival_us,
            outcome.start_us(),
            outcome.end_us(),
            outcome.blocked,
            outcome.preempted,
            service = one.service_us(),
        );
    }
    text
}

/// Mean turnaround in milliseconds; 0 if there is no invocation.
pub fn mean_turnaround_ms(trace: &[Invocation], outcomes: &[Outcome]) -> f64 {
    let turnaround = |(one, outcome): (&Invocation, &Outcome)| {
        outcome.end_us().saturating_sub(one.arrival_us) as f64 / 1e3
    };
    let sum: f64 = trace.iter().zip(outcomes).map(turnaround).sum();
    sum / trace.len().max(1) as f64
}
