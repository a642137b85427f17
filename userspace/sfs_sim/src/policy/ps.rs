//! Processor sharing: each of n ready invocations has min(1, CPUs / n) of a
//! CPU. The ideal that fair schedulers such as EEVDF approximate.

use super::pool::Pool;
use super::Policy;
use crate::job::{Job, JobId};
use crate::time::Time;

/// The policy `ps`.
#[derive(Debug)]
pub struct Ps(Pool);

impl Ps {
    /// Creates the policy for `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        let mut pool = Pool::default();
        pool.set_cpus(cpus);
        Self(pool)
    }
}

impl Policy for Ps {
    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]) {
        let job = &mut jobs[id as usize];
        job.runs(now);
        self.0.add(id, job.phase);
    }

    fn next(&self) -> Option<Time> {
        self.0.next()
    }

    fn advance(&mut self, now: Time, _jobs: &mut [Job], ended: &mut Vec<JobId>) {
        self.0.advance(now, ended);
    }

    fn settle(&mut self, _now: Time, _jobs: &mut [Job]) {}
}
