//! First in, first out: a CPU goes to the invocation that has been ready for
//! longest, and keeps it until it ends or blocks.

use super::Policy;
use crate::job::{Job, JobId};
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The policy `fifo`.
#[derive(Debug)]
pub struct Fifo {
    cpus: usize,
    queue: VecDeque<JobId>,
    /// Running invocations, by the end of their phase.
    running: BinaryHeap<Reverse<(Time, JobId)>>,
}

impl Fifo {
    /// Creates the policy for `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        Self {
            cpus: cpus as usize,
            queue: VecDeque::new(),
            running: BinaryHeap::new(),
        }
    }
}

impl Policy for Fifo {
    fn ready(&mut self, id: JobId, _now: Time, _jobs: &mut [Job]) {
        self.queue.push_back(id);
    }

    fn next(&self) -> Option<Time> {
        self.running.peek().map(|Reverse((end, _))| *end)
    }

    fn advance(&mut self, now: Time, _jobs: &mut [Job], ended: &mut Vec<JobId>) {
        while let Some(Reverse((end, id))) = self.running.peek().copied() {
            if end > now {
                return;
            }
            self.running.pop();
            ended.push(id);
        }
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        while self.running.len() < self.cpus {
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            let job = &mut jobs[id as usize];
            job.runs(now);
            self.running.push(Reverse((now + job.phase, id)));
        }
    }
}
