//! IDEAL: no contention. Every invocation has its own CPU from its arrival on;
//! no scheduler can be faster.

use crate::job::Outcome;
use crate::time::PER_US;
use faas_data::trace::{Invocation, Phase};

/// The outcomes of the invocations of `trace`.
pub fn outcomes(trace: &[Invocation]) -> Vec<Outcome> {
    trace.iter().map(outcome).collect()
}

fn outcome(one: &Invocation) -> Outcome {
    let is_io = |phase: &Phase| matches!(phase, Phase::Io { .. });
    // Consecutive blocking phases count as one.
    let blocked = one.phases.chunk_by(|a, b| is_io(a) == is_io(b));
    Outcome {
        start: one.arrival_us * PER_US,
        end: (one.arrival_us + one.uncontended_us()) * PER_US,
        blocked: blocked.filter(|run| is_io(&run[0])).count() as u64,
        preempted: 0,
    }
}
