//! The event loop: arrivals, returns from I/O, and the policy's decisions.
//!
//! At each instant the ends of CPU phases come first, then the returns from
//! I/O, then the arrivals; only after all of them does the policy decide who
//! runs. Ties go to the smaller id, and ids follow the order of arrival.

use crate::job::{Job, JobId, Outcome};
use crate::policy::{ideal, Kind, Policy, Settings};
use crate::time::{Time, PER_US};
use faas_data::input::MAX_US;
use faas_data::trace::{Invocation, Phase};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Why a trace cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// More invocations than ids.
    #[error("the trace has {0} invocations, more than 4294967295")]
    TooMany(usize),
    /// The simulated time could exceed what the time type can represent.
    #[error("the trace may take {0} us to serve, more than {MAX_US}")]
    TooLong(u128),
    /// Rows that are not sorted by arrival.
    #[error("invocation {0} arrives before its predecessor")]
    Unsorted(usize),
    /// No CPUs.
    #[error("want 1 CPU or more")]
    NoCpus,
}

/// Simulates `trace` under the policy `kind`; returns the outcome of each
/// invocation, in the order of the trace. Takes O(log n) per event (`las` and
/// `gittins`: O(log n + CPUs)).
///
/// # Errors
/// If the trace is not sorted by arrival or is too large, or there is no CPU.
pub fn simulate(
    trace: &[Invocation],
    kind: Kind,
    settings: &Settings,
) -> Result<Vec<Outcome>, SimError> {
    simulate_watched(trace, kind, settings, &|_| ())
}

/// As [`simulate`]; also reports to `watch`, at intervals, how many invocations
/// are complete.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched(
    trace: &[Invocation],
    kind: Kind,
    settings: &Settings,
    watch: &dyn Fn(u64),
) -> Result<Vec<Outcome>, SimError> {
    check(trace, settings.cpus)?;
    Ok(match kind.policy(trace, settings) {
        Some(policy) => Engine::new(trace, policy).run(watch),
        None => ideal::outcomes(trace),
    })
}

/// Checks that all times fit. No work-conserving policy takes longer than the
/// last arrival + all work / CPUs + the longest invocation: while the last to
/// complete neither runs nor blocks, all CPUs are busy (Graham 1966).
fn check(trace: &[Invocation], cpus: u32) -> Result<(), SimError> {
    if cpus == 0 {
        return Err(SimError::NoCpus);
    }
    if u32::try_from(trace.len()).is_err() {
        return Err(SimError::TooMany(trace.len()));
    }
    let out_of_order = |two: &[Invocation]| two[1].arrival_us < two[0].arrival_us;
    if let Some(before) = trace.windows(2).position(out_of_order) {
        return Err(SimError::Unsorted(before + 1));
    }
    let last = trace.last().map_or(0, |one| one.arrival_us);
    let work: u128 = trace.iter().map(|one| u128::from(one.service_us())).sum();
    let longest = trace.iter().map(Invocation::uncontended_us).max();
    let total = u128::from(last) + work.div_ceil(cpus.into()) + u128::from(longest.unwrap_or(0));
    if total > u128::from(MAX_US) {
        return Err(SimError::TooLong(total));
    }
    Ok(())
}

struct Engine<'a> {
    trace: &'a [Invocation],
    policy: Box<dyn Policy>,
    jobs: Vec<Job>,
    /// The next phase of each invocation.
    next_phase: Vec<usize>,
    outcomes: Vec<Outcome>,
    /// Blocked invocations, and when they return.
    blocked: BinaryHeap<Reverse<(Time, JobId)>>,
    /// The next invocation to arrive.
    arriving: usize,
    /// Number of completed invocations.
    completed: u64,
}

/// Completions between two reports of progress.
const REPORT_EVERY: u64 = 4096;

impl<'a> Engine<'a> {
    fn new(trace: &'a [Invocation], policy: Box<dyn Policy>) -> Self {
        let job = |one: &Invocation| Job {
            later: one.service_us() * PER_US,
            ..Job::default()
        };
        let nothing = Outcome {
            start: 0,
            end: 0,
            blocked: 0,
            preempted: 0,
        };
        Self {
            trace,
            policy,
            jobs: trace.iter().map(job).collect(),
            next_phase: vec![0; trace.len()],
            outcomes: vec![nothing; trace.len()],
            blocked: BinaryHeap::new(),
            arriving: 0,
            completed: 0,
        }
    }

    fn run(mut self, watch: &dyn Fn(u64)) -> Vec<Outcome> {
        let mut ended = Vec::new();
        let mut reported = 0;
        while let Some(now) = self.next_event() {
            self.policy.advance(now, &mut self.jobs, &mut ended);
            ended.sort_unstable();
            for id in ended.drain(..) {
                self.proceed(id, now);
            }
            self.wake(now);
            self.arrive(now);
            self.policy.settle(now, &mut self.jobs);
            if self.completed >= reported + REPORT_EVERY {
                reported = self.completed;
                watch(reported);
            }
        }
        self.outcomes
    }

    fn next_event(&self) -> Option<Time> {
        let arrival = self.trace.get(self.arriving).map(arrival);
        let wakeup = self.blocked.peek().map(|Reverse((until, _))| *until);
        let times = [arrival, wakeup, self.policy.next()];
        times.into_iter().flatten().min()
    }

    fn wake(&mut self, now: Time) {
        while let Some(Reverse((until, id))) = self.blocked.peek().copied() {
            if until > now {
                return;
            }
            self.blocked.pop();
            self.proceed(id, now);
        }
    }

    fn arrive(&mut self, now: Time) {
        while let Some(one) = self.trace.get(self.arriving) {
            if arrival(one) > now {
                return;
            }
            let id = self.arriving as JobId;
            self.arriving += 1;
            self.policy.arrive(id, now);
            self.proceed(id, now);
        }
    }

    /// Begins the next phase of `id`, or completes it. Consecutive phases of
    /// one kind are merged: nothing happens between them.
    fn proceed(&mut self, id: JobId, now: Time) {
        let index = id as usize;
        let (mut cpu, mut io) = (0, 0);
        for phase in &self.trace[index].phases[self.next_phase[index]..] {
            match phase {
                Phase::Cpu { us, .. } if io == 0 => cpu += us * PER_US,
                Phase::Io { us, .. } if cpu == 0 => io += us * PER_US,
                _ => break,
            }
            self.next_phase[index] += 1;
        }
        let job = &mut self.jobs[index];
        if cpu > 0 {
            job.phase = cpu;
            job.later -= cpu;
            self.policy.ready(id, now, &mut self.jobs);
        } else if io > 0 {
            job.runs(now);
            self.outcomes[index].blocked += 1;
            self.blocked.push(Reverse((now + io, id)));
        } else {
            self.complete(index, now);
        }
    }

    fn complete(&mut self, index: usize, now: Time) {
        let (job, outcome) = (&self.jobs[index], &mut self.outcomes[index]);
        outcome.start = job.start.unwrap_or(now);
        outcome.end = now;
        outcome.preempted = job.preemptions;
        self.completed += 1;
    }
}

fn arrival(one: &Invocation) -> Time {
    one.arrival_us * PER_US
}
