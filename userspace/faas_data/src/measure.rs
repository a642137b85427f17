//! The measures of one invocation, and the definition of short.
//!
//! - *turnaround* = end - arrival, *queue delay* = start - arrival. The arrival
//!   is the planned one, so that a late dispatcher counts against the run.
//! - *slowdown* = turnaround / uncontended duration; *RTE* is its inverse, at
//!   most 1. The uncontended duration is the service time plus the time
//!   blocked, so that a slowdown of 1 means "as on an idle machine". (By
//!   service time alone, a function that mostly waits for I/O would always look
//!   slowed down.)
//! - *short* are the shortest 83 % by service time, rounded up to whole
//!   invocations; of equal ones those with the smaller id. The split covers all
//!   invocations of the trace, completed or not, so it is the same for every
//!   scheduler.
//!
//! Invocations that did not complete successfully have no measures.

use crate::result::Record;
use crate::trace::Invocation;

/// The paper's share of short invocations, in per cent.
pub const SHORT_PERCENT: usize = 83;

/// The measures of one completed invocation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// Row in the trace, counted from 0.
    pub id: usize,
    /// Turnaround in microseconds.
    pub turnaround_us: u64,
    /// Queue delay in microseconds.
    pub queue_delay_us: u64,
    /// Turnaround / uncontended duration, above 0.
    pub slowdown: f64,
}

impl Measure {
    /// Measures of the record of `invocation`; `None` if it did not complete
    /// successfully.
    pub fn of(record: &Record, invocation: &Invocation) -> Option<Self> {
        let (start_us, end_us) = record.completed()?;
        let turnaround_us = end_us - record.arrival_us;
        Some(Self {
            id: record.id,
            turnaround_us,
            queue_delay_us: start_us - record.arrival_us,
            slowdown: turnaround_us as f64 / invocation.uncontended_us() as f64,
        })
    }

    /// Measures of all that completed successfully. `records` must be those of
    /// `invocations` in their order, or empty.
    pub fn all(records: &[Record], invocations: &[Invocation]) -> Vec<Self> {
        let pairs = records.iter().zip(invocations);
        pairs
            .filter_map(|(record, invocation)| Self::of(record, invocation))
            .collect()
    }

    /// Turnaround in milliseconds.
    pub fn turnaround_ms(&self) -> f64 {
        self.turnaround_us as f64 / 1e3
    }

    /// Run-time effectiveness, from 0 to 1. Rounding of the times may make a
    /// turnaround 1 us shorter than possible.
    pub fn rte(&self) -> f64 {
        (1.0 / self.slowdown).min(1.0)
    }
}

/// For each invocation, whether it is one of the shortest [`SHORT_PERCENT`].
pub fn shortest(invocations: &[Invocation]) -> Vec<bool> {
    let mut by_service: Vec<usize> = (0..invocations.len()).collect();
    by_service.sort_by_key(|id| (invocations[*id].service_us(), *id));
    let count = (invocations.len() * SHORT_PERCENT).div_ceil(100);
    let mut short = vec![false; invocations.len()];
    for id in &by_service[..count] {
        short[*id] = true;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Exit;
    use crate::trace::Phase;

    fn record(exit: Exit, start_us: Option<u64>, end_us: Option<u64>) -> Record {
        Record {
            id: 0,
            function: "f".into(),
            arrival_us: 1000,
            start_us,
            end_us,
            cpu_us: 0,
            service_us: 10_000,
            voluntary_switches: 0,
            involuntary_switches: 0,
            exit,
            runqueue_wait_us: None,
            alone_us: None,
        }
    }

    #[test]
    fn slowdown_is_relative_to_cpu_and_io_time() {
        let mut one = Invocation::cpu(1000, "f", 10_000);
        one.phases.insert(0, Phase::io(30_000));
        let found = Measure::of(&record(Exit::Code(0), Some(1500), Some(61_000)), &one).unwrap();
        assert_eq!((found.turnaround_us, found.queue_delay_us), (60_000, 500));
        assert_eq!((found.turnaround_ms(), found.slowdown), (60.0, 1.5));
        assert_eq!(found.rte(), 1.0 / 1.5);
        // Rounded down by a microsecond.
        let early = Measure::of(&record(Exit::Code(0), Some(1000), Some(40_999)), &one).unwrap();
        assert!(early.slowdown < 1.0);
        assert_eq!(early.rte(), 1.0);
    }

    #[test]
    fn failures_have_no_measures_even_with_both_times() {
        let one = [Invocation::cpu(1000, "f", 10_000)];
        for exit in [Exit::Code(1), Exit::Signal(9), Exit::Http(500)] {
            let records = [record(exit, Some(1500), Some(61_000))];
            assert_eq!(Measure::all(&records, &one), []);
        }
        assert_eq!(Measure::all(&[], &one), []);
    }

    #[test]
    fn of_equal_invocations_those_with_smaller_ids_are_short() {
        let equal = vec![Invocation::cpu(0, "f", 5); 10];
        // ceil(8.3) = 9
        let mut want = vec![true; 9];
        want.push(false);
        assert_eq!(shortest(&equal), want);
        assert_eq!(shortest(&equal[..1]), [true]);
        assert!(shortest(&[]).is_empty());
    }
}
