//! Shortest remaining time first: the CPUs go to the invocations with the least
//! CPU time left, over this phase and later ones.
//!
//! On one CPU and without I/O no policy has a lower mean turnaround (Schrage
//! 1968). On several CPUs it is not always the best, but becomes optimal as the
//! load approaches 1 (Grosof, Scully & Harchol-Balter 2018). A real scheduler
//! does not know the remaining time.

use super::Policy;
use crate::job::{Job, JobId};
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The policy `srtf`.
#[derive(Debug)]
pub struct Srtf {
    cpus: usize,
    /// Waiting invocations, by remaining time.
    waiting: BinaryHeap<Reverse<(Time, JobId)>>,
    /// Running invocations, by the time at which they would complete if they
    /// kept their CPU and never blocked. This is the order of their remaining
    /// times at any instant.
    running: BTreeSet<(Time, JobId)>,
    /// Running invocations, by the end of their phase.
    ends: BTreeSet<(Time, JobId)>,
}

impl Srtf {
    /// Creates the policy for `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        Self {
            cpus: cpus as usize,
            waiting: BinaryHeap::new(),
            running: BTreeSet::new(),
            ends: BTreeSet::new(),
        }
    }

    fn start(&mut self, id: JobId, now: Time, job: &mut Job) {
        job.runs(now);
        self.ends.insert((now + job.phase, id));
        self.running.insert((now + job.phase + job.later, id));
    }

    fn preempt(&mut self, through: Time, id: JobId, now: Time, job: &mut Job) {
        let end = through - job.later;
        self.running.remove(&(through, id));
        self.ends.remove(&(end, id));
        job.charge(job.phase - (end - now));
        job.preemptions += 1;
        self.waiting.push(Reverse((job.phase + job.later, id)));
    }
}

impl Policy for Srtf {
    fn ready(&mut self, id: JobId, _now: Time, jobs: &mut [Job]) {
        let job = &jobs[id as usize];
        self.waiting.push(Reverse((job.phase + job.later, id)));
    }

    fn next(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| *end)
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        while let Some((end, id)) = self.ends.first().copied() {
            if end > now {
                return;
            }
            self.ends.pop_first();
            let job = &mut jobs[id as usize];
            self.running.remove(&(end + job.later, id));
            job.charge(job.phase);
            ended.push(id);
        }
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        while let Some(Reverse((remaining, id))) = self.waiting.peek().copied() {
            if self.running.len() == self.cpus {
                // Equals do not preempt each other.
                match self.running.last().copied() {
                    Some((through, victim)) if remaining < through - now => {
                        self.preempt(through, victim, now, &mut jobs[victim as usize]);
                    }
                    _ => return,
                }
            }
            self.waiting.pop();
            self.start(id, now, &mut jobs[id as usize]);
        }
    }
}
