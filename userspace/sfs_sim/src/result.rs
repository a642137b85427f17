//! Results in the format of [`faas_data::result`].
//!
//! `start_us` is when an invocation first had a CPU or a share of one, or when
//! its I/O began if it begins with I/O. `cpu_us` is `service_us`, since nothing
//! has overhead. `voluntary_switches` counts how often it blocked,
//! `involuntary_switches` how often it was preempted: losses of the CPU under
//! `srtf`, `gittins`, `las` (where sharing with equals does not count) and the
//! policies by rank, demotions under `sfs`, and 0 under `ideal`, `ps` and
//! `fifo`. Times are rounded down to whole microseconds. `exit` is 0. Run-queue
//! waits are unknown and have no column.

use crate::job::Outcome;
use faas_data::result::{Exit, Record};
use faas_data::trace::Invocation;

/// The records of the invocations of `trace`, in its order.
pub fn records(trace: &[Invocation], outcomes: &[Outcome]) -> Vec<Record> {
    let pairs = trace.iter().zip(outcomes).enumerate();
    let record = |(id, (one, outcome)): (usize, (&Invocation, &Outcome))| Record {
        id,
        function: one.function.clone(),
        arrival_us: one.arrival_us,
        start_us: Some(outcome.start_us()),
        end_us: Some(outcome.end_us()),
        cpu_us: one.service_us(),
        service_us: one.service_us(),
        voluntary_switches: outcome.blocked,
        involuntary_switches: outcome.preempted,
        exit: Exit::Code(0),
        runqueue_wait_us: None,
        alone_us: None,
    };
    pairs.map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::PER_US;
    use faas_data::result::{parse, to_csv_without_waits};

    #[test]
    fn records_read_back_as_a_result_of_the_trace() {
        let trace = [Invocation::cpu(5, "f", 10), Invocation::cpu(6, "g", 20)];
        let outcome = |start, end, preempted| Outcome {
            start: start * PER_US + 7,
            end: end * PER_US + PER_US - 1,
            blocked: 1,
            preempted,
        };
        let records = records(&trace, &[outcome(5, 15, 0), outcome(15, 35, 2)]);
        let text = to_csv_without_waits(&records);
        assert!(text.ends_with(",exit\n0,f,5,5,15,10,10,1,0,0\n1,g,6,15,35,20,20,1,2,0\n"));
        assert_eq!(parse("r", text.as_bytes(), &trace).unwrap(), records);
    }
}
