//! One invocation during the simulation, and its outcome.

use crate::time::{Time, PER_US};

/// An invocation's row in the trace, counted from 0.
pub type JobId = u32;

/// An invocation as policies see it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Job {
    /// CPU time left in the current phase.
    pub phase: Time,
    /// CPU time received, up to the last time it became ready or was preempted.
    pub attained: Time,
    /// CPU time needed in later phases.
    pub later: Time,
    /// Number of preemptions.
    pub preemptions: u64,
    /// When it first ran, or first blocked if it begins with I/O.
    pub start: Option<Time>,
}

impl Job {
    /// Records that it runs at `now`.
    pub fn runs(&mut self, now: Time) {
        self.start.get_or_insert(now);
    }

    /// Records `ticks` of CPU time in the current phase.
    pub fn charge(&mut self, ticks: Time) {
        self.attained += ticks;
        self.phase -= ticks;
    }
}

/// The outcome of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When it first ran, or first blocked if it begins with I/O, in ticks.
    pub start: Time,
    /// When it completed, in ticks.
    pub end: Time,
    /// Number of times it blocked.
    pub blocked: u64,
    /// Number of preemptions, under policies that preempt.
    pub preempted: u64,
}

impl Outcome {
    /// When it first ran, in microseconds, rounded down.
    pub fn start_us(&self) -> u64 {
        self.start / PER_US
    }

    /// When it completed, in microseconds, rounded down.
    pub fn end_us(&self) -> u64 {
        self.end / PER_US
    }
}
