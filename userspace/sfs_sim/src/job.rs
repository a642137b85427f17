//! One invocation while it is served, and what became of it.

use crate::time::{Time, PER_US};

/// An invocation's row in the trace, from 0.
pub type JobId = u32;

/// An invocation as policies see it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Job {
    /// CPU time that it still needs in its present phase.
    pub phase: Time,
    /// CPU time that it has had, up to the last time it was made ready or was
    /// preempted.
    pub attained: Time,
    /// CPU time that it needs in later phases.
    pub later: Time,
    /// How often it was preempted.
    pub preemptions: u64,
    /// When it first ran, or first blocked if it begins so.
    pub start: Option<Time>,
}

impl Job {
    /// Notes that it runs at `now`.
    pub fn runs(&mut self, now: Time) {
        self.start.get_or_insert(now);
    }

    /// Notes that it has had `ticks` of CPU time in its present phase.
    pub fn charge(&mut self, ticks: Time) {
        self.attained += ticks;
        self.phase -= ticks;
    }
}

/// What became of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When it first ran, or first blocked if it begins so, in ticks.
    pub start: Time,
    /// When it completed, in ticks.
    pub end: Time,
    /// How often it blocked.
    pub blocked: u64,
    /// How often it was preempted, where the policy has that.
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
