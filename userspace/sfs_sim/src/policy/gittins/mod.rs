//! The Gittins index policy: the CPUs go to the invocations with the highest
//! index. The index follows from the service that an invocation has attained
//! and the distribution of all service times; see [`index`].
//!
//! In an M/G/1 queue no policy with only this information has a lower mean
//! turnaround (Gittins 1979; Aalto, Ayesta & Righter 2009); on several CPUs it
//! is close to optimal at high load (Scully, Grosof & Harchol-Balter 2020).
//! Service counts over the whole invocation, across its I/O.
//!
//! The index of a running invocation falls only at the points of the
//! distribution. It is therefore checked again only at those points where it
//! falls below the index of the best waiting invocation.

pub mod index;

use super::Policy;
use crate::job::{Job, JobId};
use crate::time::{Time, PER_US};
use faas_data::trace::Invocation;
use index::Index;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An index with a total order; it is never NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rank(f64);

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A running invocation.
#[derive(Debug, Clone, Copy)]
struct Run {
    id: JobId,
    since: Time,
    /// End of its phase.
    end: Time,
    /// When its index may fall below `against`.
    check: Time,
    against: Rank,
}

/// The policy `gittins`.
#[derive(Debug)]
pub struct Gittins {
    cpus: usize,
    index: Index,
    waiting: BinaryHeap<(Rank, Reverse<JobId>)>,
    running: Vec<Run>,
}

impl Gittins {
    /// Creates the policy for `cpus` CPUs and the distribution of
    /// `durations_us`, or of the service times of `trace` if that is empty.
    pub fn new(cpus: u32, durations_us: &[u64], trace: &[Invocation]) -> Self {
        let own = || trace.iter().map(Invocation::service_us).collect();
        let known: Vec<u64> = match durations_us {
            [] => own(),
            given => given.to_vec(),
        };
        Self {
            cpus: cpus as usize,
            index: Index::of(known.into_iter().map(|us| us * PER_US).collect()),
            waiting: BinaryHeap::new(),
            running: Vec::new(),
        }
    }

    fn rank(&self, run: &Run, now: Time, jobs: &[Job]) -> Rank {
        let age = jobs[run.id as usize].attained + (now - run.since);
        Rank(self.index.at(age))
    }

    /// The running invocation to preempt first; of equals, the latest to
    /// arrive.
    fn lowest(&self, now: Time, jobs: &[Job]) -> Option<(usize, Rank)> {
        let ranks = self.running.iter().enumerate();
        ranks
            .map(|(place, run)| (place, self.rank(run, now, jobs)))
            .min_by_key(|(place, rank)| (*rank, Reverse(self.running[*place].id)))
    }

    fn start(&mut self, id: JobId, now: Time, job: &mut Job) {
        job.runs(now);
        self.running.push(Run {
            id,
            since: now,
            end: now + job.phase,
            check: Time::MAX,
            against: Rank(f64::NEG_INFINITY),
        });
    }

    fn preempt(&mut self, place: usize, now: Time, jobs: &mut [Job]) {
        let run = self.running.swap_remove(place);
        let job = &mut jobs[run.id as usize];
        job.charge(now - run.since);
        job.preemptions += 1;
        let rank = Rank(self.index.at(job.attained));
        self.waiting.push((rank, Reverse(run.id)));
    }

    /// Schedules a check of each running invocation for when it may fall below
    /// `best`.
    fn watch(&mut self, best: Rank, now: Time, jobs: &[Job]) {
        for run in &mut self.running {
            // A check against a higher rank is early enough.
            if run.check > now && best <= run.against {
                continue;
            }
            let age = jobs[run.id as usize].attained + (now - run.since);
            let falls = self.index.falls_below(best.0, age);
            run.check = falls.map_or(Time::MAX, |at| now + (at - age));
            run.against = best;
        }
    }
}

impl Policy for Gittins {
    fn ready(&mut self, id: JobId, _now: Time, jobs: &mut [Job]) {
        let rank = Rank(self.index.at(jobs[id as usize].attained));
        self.waiting.push((rank, Reverse(id)));
    }

    fn next(&self) -> Option<Time> {
        let ends = self.running.iter().map(|run| run.end);
        let checks = self.running.iter().map(|run| run.check);
        let checks = checks.filter(|_| !self.waiting.is_empty());
        ends.chain(checks).min()
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        self.running.retain(|run| {
            if run.end <= now {
                let job = &mut jobs[run.id as usize];
                job.charge(job.phase);
                ended.push(run.id);
            }
            run.end > now
        });
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        while let Some((best, Reverse(id))) = self.waiting.peek().copied() {
            if self.running.len() == self.cpus {
                match self.lowest(now, jobs) {
                    Some((place, rank)) if rank < best => self.preempt(place, now, jobs),
                    _ => {
                        self.watch(best, now, jobs);
                        return;
                    }
                }
                // The victim ranks below the invocation that replaced it.
            }
            self.waiting.pop();
            self.start(id, now, &mut jobs[id as usize]);
        }
    }
}
