//! scx_sfs with `--policy learned`: SFS until there are tables, then ranks.
//!
//! See [`ranked`](super::ranked) for the order by ranks, and
//! `sfs_policy::learn` for the source of the ranks. With the first tables, all
//! invocations in FILTER and FAIR move to the ranked order and keep their
//! attained service.

use super::ranked::rule::{Learned as Tables, Rule};
use super::ranked::Ranked;
use super::sfs::Sfs;
use super::{Policy, Settings};
use crate::job::{Job, JobId};
use crate::time::{Time, PER_NS};
use faas_data::trace::Invocation;

/// The policy `learned`.
#[derive(Debug)]
pub struct Learned {
    /// SFS, as long as there are no tables.
    sfs: Option<Sfs>,
    /// Number of invocations present.
    present: usize,
    ranked: Ranked<Tables>,
}

impl Learned {
    /// Creates the policy for `trace` with `settings`.
    pub fn new(settings: &Settings, trace: &[Invocation]) -> Self {
        let tables = Tables::new(settings, trace);
        let sfs = || Sfs::new(settings, settings.overload);
        Self {
            sfs: (!tables.is_ready()).then(sfs),
            present: 0,
            ranked: Ranked::new(settings, tables),
        }
    }

    /// Moves all invocations from SFS to the ranked order.
    fn hand_over(&mut self, now: Time, jobs: &mut [Job]) {
        if let Some(mut sfs) = self.sfs.take() {
            for id in sfs.take(now, jobs) {
                self.ranked.ready(id, now, jobs);
            }
        }
    }
}

impl Policy for Learned {
    fn arrive(&mut self, id: JobId, now: Time) {
        self.ranked.arrive(id, now);
        if let Some(sfs) = &mut self.sfs {
            sfs.arrive(id, now);
        }
    }

    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]) {
        match &mut self.sfs {
            Some(sfs) => {
                self.present += 1;
                sfs.ready(id, now, jobs);
            }
            None => self.ranked.ready(id, now, jobs),
        }
    }

    fn next(&self) -> Option<Time> {
        match &self.sfs {
            Some(sfs) => sfs.next(),
            None => self.ranked.next(),
        }
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        let Some(sfs) = &mut self.sfs else {
            self.ranked.advance(now, jobs, ended);
            return;
        };
        self.ranked.pass(now, self.present);
        sfs.advance(now, jobs, ended);
        self.present -= ended.len();
        let tables = self.ranked.rule();
        for id in ended.iter() {
            let job = &jobs[*id as usize];
            if job.later == 0 {
                tables.completed(*id, job.attained / PER_NS);
            }
        }
        if tables.is_ready() {
            self.hand_over(now, jobs);
        }
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        match &mut self.sfs {
            Some(sfs) => sfs.settle(now, jobs),
            None => self.ranked.settle(now, jobs),
        }
    }
}
