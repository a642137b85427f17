//! SFS as in the paper (SC'22): FILTER before FAIR.
//!
//! An invocation gets credit S at its arrival and queues in FILTER. There it
//! runs without preemption until it ends, blocks, or has used its credit; the
//! rest of it runs in FAIR, which shares the CPUs that FILTER leaves by
//! processor sharing. An invocation that blocks keeps its remaining credit and
//! queues in FILTER again. FILTER has strict priority: unlike in scx_sfs,
//! nothing bounds the wait in FAIR.
//!
//! [`sfs_policy::Controller`] decides on S and overload, as in the loader of
//! scx_sfs. Overload begins when the head of FILTER has waited O x S. Until it
//! is over, invocations that become ready go to FAIR, and those already in
//! FILTER stay there.
//!
//! With `charge_io` the paper's handling of I/O is off: blocking uses up
//! credit, too, from the arrival on if the invocation blocks first.
//!
//! A demotion counts as a preemption; a CPU that FILTER takes from FAIR does
//! not, since FAIR shares.

use super::pool::Pool;
use super::{Policy, Settings};
use crate::job::{Job, JobId};
use crate::time::{Time, PER_NS};
use sfs_policy::{Config, Controller, Mode, OverloadPolicy};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The policies `sfs` and `sfs-no-hybrid`.
#[derive(Debug)]
pub struct Sfs {
    cpus: u32,
    controller: Controller,
    overload: Option<OverloadPolicy>,
    /// Remaining credit of each invocation, in ticks.
    credit: Vec<Time>,
    /// FILTER: waiting invocations, and since when each waits.
    filter: VecDeque<(Time, JobId)>,
    /// Invocations that run from FILTER, by the end of their turn.
    running: BinaryHeap<Reverse<(Time, JobId)>>,
    fair: Pool,
    /// Invocations in FAIR that have never had a CPU.
    unstarted: Vec<JobId>,
    /// Whether time blocked also uses up credit.
    charge_io: bool,
    /// When each invocation last blocked.
    blocked: Vec<Time>,
}

impl Sfs {
    /// Creates the policy with `settings` and this handling of overload.
    pub fn new(settings: &Settings, overload: Option<OverloadPolicy>) -> Self {
        let controller = Controller::new(Config {
            window: settings.window,
            slice: settings.slice,
            initial_slice_ns: settings.initial_slice_ns,
            overload,
            cpus: settings.cpus,
        });
        Self {
            cpus: settings.cpus,
            controller,
            overload,
            credit: Vec::new(),
            filter: VecDeque::new(),
            running: BinaryHeap::new(),
            fair: Pool::default(),
            unstarted: Vec::new(),
            charge_io: settings.charge_io,
            blocked: Vec::new(),
        }
    }

    /// When the head of FILTER will have waited for O x S.
    fn overload_at(&self) -> Option<Time> {
        let (since, _) = self.filter.front()?;
        if self.controller.mode() == Mode::FairOnly {
            return None;
        }
        let enter = self.overload?.enter_ns(self.controller.slice_ns());
        Some(since.saturating_add(enter.saturating_mul(PER_NS)))
    }

    /// Ends the turns in FILTER that end by `now`.
    fn end_turns(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        while let Some(Reverse((over, id))) = self.running.peek().copied() {
            if over > now {
                return;
            }
            self.running.pop();
            let (job, credit) = (&mut jobs[id as usize], &mut self.credit[id as usize]);
            let turn = job.phase.min(*credit);
            job.charge(turn);
            *credit -= turn;
            if job.phase == 0 {
                ended.push(id);
            } else {
                job.preemptions += 1;
                self.fair.add(id, job.phase);
            }
        }
    }

    /// Gives free CPUs to FILTER.
    fn start_turns(&mut self, now: Time, jobs: &mut [Job]) {
        while self.running.len() < self.cpus as usize {
            let Some((_, id)) = self.filter.pop_front() else {
                return;
            };
            let job = &mut jobs[id as usize];
            job.runs(now);
            let turn = job.phase.min(self.credit[id as usize]);
            self.running.push(Reverse((now + turn, id)));
        }
    }

    /// Reports the wait of FILTER's head to the controller.
    fn watch_delay(&mut self, now: Time) {
        let wait = self.filter.front().map_or(0, |(since, _)| now - since);
        self.controller.on_delay(wait / PER_NS);
    }
}

impl Policy for Sfs {
    fn arrive(&mut self, _id: JobId, now: Time) {
        self.controller.on_arrivals(&[now / PER_NS]);
        // Ids follow the order of arrival.
        let credit = self.controller.slice_ns().saturating_mul(PER_NS);
        self.credit.push(credit);
        self.blocked.push(now);
    }

    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]) {
        if self.charge_io {
            let credit = &mut self.credit[id as usize];
            *credit = credit.saturating_sub(now - self.blocked[id as usize]);
        }
        let filter = self.controller.mode() == Mode::Filter;
        if filter && self.credit[id as usize] > 0 {
            self.filter.push_back((now, id));
            return;
        }
        let job = &mut jobs[id as usize];
        self.fair.add(id, job.phase);
        if job.start.is_none() {
            self.unstarted.push(id);
        }
    }

    fn next(&self) -> Option<Time> {
        let over = self.running.peek().map(|Reverse((over, _))| *over);
        let times = [over, self.fair.next(), self.overload_at()];
        times.into_iter().flatten().min()
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        self.fair.advance(now, ended);
        for id in ended.iter() {
            let job = &mut jobs[*id as usize];
            // After overload an invocation in FAIR may still have credit; CPU
            // time counts against it in both queues.
            let credit = &mut self.credit[*id as usize];
            *credit = credit.saturating_sub(job.phase);
            job.charge(job.phase);
        }
        self.end_turns(now, jobs, ended);
        for id in ended.iter() {
            self.blocked[*id as usize] = now;
        }
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        self.start_turns(now, jobs);
        self.watch_delay(now);
        let left = self.cpus - self.running.len() as u32;
        self.fair.set_cpus(left);
        if left > 0 {
            for id in self.unstarted.drain(..) {
                jobs[id as usize].runs(now);
            }
        }
    }
}
