//! Processor sharing in O(log n) per event, by virtual time.
//!
//! The virtual clock shows the CPU time that an invocation present all along
//! would have had: it runs at min(1, CPUs / n). An invocation that arrives when
//! it shows v and needs w leaves when it shows v + w, regardless of other
//! arrivals and departures (Kleinrock 1976, sec. 4.4, and Parekh & Gallager
//! 1993 for the virtual clock).

use crate::job::JobId;
use crate::time::{self, Attained, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Invocations that share CPUs equally.
#[derive(Debug, Default)]
pub struct Pool {
    cpus: u32,
    clock: Attained,
    /// When `clock` was last updated.
    now: Time,
    /// The clock reading at which each invocation leaves.
    leaving: BinaryHeap<Reverse<(Attained, JobId)>>,
}

impl Pool {
    /// Whether it holds no invocation.
    pub fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Adds an invocation that needs `work` of CPU time, at the time of the last
    /// [`advance`](Self::advance).
    pub fn add(&mut self, id: JobId, work: Time) {
        let leaves = self.clock + time::attained(work);
        self.leaving.push(Reverse((leaves, id)));
    }

    /// Sets the number of CPUs, 0 or more, from the time of the last
    /// [`advance`](Self::advance) on.
    pub fn set_cpus(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// When the next invocation leaves, if no other arrives.
    pub fn next(&self) -> Option<Time> {
        let Reverse((leaves, _)) = self.leaving.peek()?;
        let (numerator, denominator) = self.rate();
        if numerator == 0 {
            return None;
        }
        let left = leaves.saturating_sub(self.clock);
        Some(self.now + time::duration(left, numerator, denominator))
    }

    /// Advances to `now` and adds the invocations that leave to `ended`.
    pub fn advance(&mut self, now: Time, ended: &mut Vec<JobId>) {
        if !self.leaving.is_empty() {
            let (numerator, denominator) = self.rate();
            self.clock += time::progress(now - self.now, numerator, denominator);
        }
        self.now = now;
        while let Some(Reverse((leaves, id))) = self.leaving.peek().copied() {
            if leaves > self.clock {
                return;
            }
            self.leaving.pop();
            ended.push(id);
        }
    }

    /// The rate of the clock: min(CPUs, n) / n.
    fn rate(&self) -> (u32, u32) {
        let members = self.leaving.len() as u32;
        (self.cpus.min(members), members)
    }
}
