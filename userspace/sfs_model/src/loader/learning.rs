//! What the loader learns, and when it hands it over: `userspace/scx_sfs/src/learn`, without
//! files. The learning itself is that of `sfs_policy`.

use super::plan::Learns;
use sfs_kernel_model::loader_ffi::Completion;
use sfs_policy::defaults::{REFRESH, REFRESH_AT_A_TIME};
use sfs_policy::learn::{pause_after, Change, LearnConfig, Learner};
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
    refused_ns: Option<u64>,
}

impl Learning {
    /// Of a loader that has just started.
    pub fn new(learns: Learns) -> Self {
        let mut learner = Learner::new(LearnConfig::default());
        if learns.is_restored {
            for function in 0..RESTORED {
                (0..10).for_each(|_| learner.on_completion(function, 100_000 << (function / 2)));
            }
        }
        Self {
            learner,
            given_up: false,
            since_refresh: REFRESH,
            not_before: 0,
            round: None,
            refused_ns: learns.refused_ns,
        }
    }

    /// Functions are ranked by what it has handed over.
    pub fn is_in_force(&self) -> bool {
        self.learner.is_ready() && !self.given_up
    }

    /// A round of refreshes is not over.
    pub fn has_more(&self) -> bool {
        self.round.is_some()
    }

    /// `Learning::take()` there, at `now` ns after load. Returns what the kernel half is to be
    /// told; `None`: the kernel has refused it, and functions are ranked no more.
    pub fn take(&mut self, completions: &[Completion], now: u64) -> Option<Vec<Change>> {
        for one in completions {
            let (killed, counted) = (one.killed != 0, one.counted != 0);
            self.learner
                .on_end(one.function, one.service_ns, killed, counted);
        }
        self.since_refresh += completions.len() as u32;
        let is_due = self.since_refresh >= REFRESH && now >= self.not_before;
        if self.given_up || !(self.round.is_some() || is_due) {
            return Some(Vec::new());
        }
        let changes = self.go_on(now);
        let has_table = changes.iter().any(|c| matches!(c, Change::Table(..)));
        if has_table && self.refused_ns.is_some_and(|from| now >= from) {
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
