//! What the loader learns, and when it hands it over: `userspace/scx_sfs/src/learn`, without
//! files. The learning itself is that of `sfs_policy`.

use super::plan::Learns;
use sfs_kernel_model::loader_ffi::Completion;
use sfs_policy::defaults::REFRESH_AT_A_TIME;
use sfs_policy::learn::{
    pause_after, refresh_after, wake_after, Change, End, LearnConfig, Learner,
};
use std::time::Duration;

/// CPU time that computing the tables of some functions takes, ns.
pub const REFRESH_NS: u64 = 50_000;
/// Names of functions that a restored state knows.
const RESTORED: u64 = 20;

/// What the loader has learned.
#[derive(Debug)]
pub struct Learning {
    learner: Learner,
    given_up: bool,
    since_refresh: u32,
    not_before: u64,
    /// Functions left in a round of refreshes, and its CPU time so far, ns.
    round: Option<(usize, u64)>,
    /// The kernel refuses tables from then on, ns since boot.
    refused_at: Option<u64>,
}

impl Learning {
    /// Of a loader that has just started, at `now`.
    pub fn new(learns: Learns, now: u64) -> Self {
        let mut learner = Learner::new(LearnConfig::default());
        if learns.is_restored {
            for function in 0..RESTORED {
                (0..10).for_each(|_| learner.on_completion(function, 100_000 << (function / 2)));
            }
        }
        Self {
            learner,
            given_up: false,
            since_refresh: u32::MAX,
            not_before: 0,
            round: None,
            refused_at: learns.refused_ns.map(|ns| now + ns),
        }
    }

    /// Functions are ranked by what it has handed over.
    pub fn is_in_force(&self) -> bool {
        !self.given_up
    }

    /// `Learning::due_in()` there, ns.
    pub fn due_in(&self, now: u64) -> Option<u64> {
        if self.given_up {
            return None;
        }
        if self.round.is_some() {
            return Some(0);
        }
        let is_due = self.since_refresh >= refresh_after(self.learner.completions());
        is_due.then(|| self.not_before.saturating_sub(now))
    }

    /// The number of completions that wakes the loader up.
    pub fn batch(&self) -> u32 {
        wake_after(self.learner.completions())
    }

    /// `Learning::take()` there. Returns what the kernel half is to be told; `None`: the kernel
    /// has refused it, and functions are ranked no more.
    pub fn take(&mut self, completions: &[Completion], now: u64) -> Option<Vec<Change>> {
        for one in completions {
            self.learner.on_end(End {
                function: one.function,
                service_ns: one.service_ns,
                burst_ns: one.burst_ns,
                killed: one.killed != 0,
                counted: one.counted != 0,
            });
        }
        let count = completions.len() as u32;
        self.since_refresh = self.since_refresh.saturating_add(count);
        if self.due_in(now) != Some(0) {
            return Some(Vec::new());
        }
        let changes = self.go_on(now);
        let has_table = changes.iter().any(|c| matches!(c, Change::Table(..)));
        if has_table && self.refused_at.is_some_and(|from| now >= from) {
            self.given_up = true;
            self.round = None;
            return None;
        }
        Some(changes)
    }

    fn go_on(&mut self, now: u64) -> Vec<Change> {
        let (left, busy) = self.round.take().unwrap_or_else(|| {
            self.since_refresh = 0;
            (usize::MAX, 0)
        });
        let changes = self.learner.refresh_some(REFRESH_AT_A_TIME);
        let busy = busy + REFRESH_NS;
        let left = left
            .saturating_sub(REFRESH_AT_A_TIME)
            .min(self.learner.pending());
        if left > 0 {
            self.round = Some((left, busy));
        } else {
            self.not_before = now + pause_after(Duration::from_nanos(busy)).as_nanos() as u64;
        }
        changes
    }
}
