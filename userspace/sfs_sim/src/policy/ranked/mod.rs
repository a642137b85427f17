//! Ranks and deadlines: the mechanics of scx_sfs with `--policy learned`.
//!
//! A [`Rule`] gives each function a table: the rank of an invocation by
//! attained CPU time, and when that rank worsens, which ends its slice. A rank
//! stands for a time, the expected cost of a completion.
//!
//! - **Virtual clock.** It shows the CPU time that an invocation present all
//!   along would have had under processor sharing.
//! - **Queue.** A free CPU takes the earliest deadline: the virtual time of the
//!   arrival + `ageing` x the time that the rank stands for.
//! - **Preemption.** An invocation that arrives or wakes and finds no free CPU
//!   preempts the one with the worst rank, if its own rank is better and the
//!   other is not overdue. If there is none, it preempts the worst overdue one
//!   for a short turn, within a budget: a part of all CPUs. Whoever preempts
//!   that turn pays as well, and what is left of it goes before all others.
//!   Nothing else preempts. When a slice ends, the CPU goes to the earliest deadline, possibly
//!   the same invocation's.
//!
//! This bounds waits. Once processor sharing would have given an invocation
//! `ageing` times the cost of its completion, no later arrival goes before it
//! in the queue, and preemption takes no more than that budget. With an `ageing`
//! of 0 the order is that of the ranks alone, and nothing is ever overdue.
//!
//! As in the kernel, slices end at ticks, and a running invocation has the rank
//! of its last tick.

pub mod rule;

use super::{Policy, Settings};
use crate::job::{Job, JobId};
use crate::time::{Time, PER_NS, PER_US};
use rule::Rule;
use sfs_policy::defaults;
use sfs_policy::learn::buckets::start_ns;
use std::collections::BTreeSet;

/// How ranks become an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mechanics {
    /// Ranks per level, 1 or more; ranks of one level are equal.
    pub level: u8,
    /// Number of ranks by which a newcomer must be better to preempt, 1 or
    /// more.
    pub margin: u8,
    /// Time between ticks in microseconds; 0: slices end at once.
    pub tick_us: u64,
    /// An invocation waits for later ones at most this many times its expected
    /// cost, in virtual time; 0: no limit.
    pub ageing: f64,
    /// Completions between two refreshes of the tables, 1 or more; `None`: as
    /// in scx_sfs, [`sfs_policy::learn::refresh_after`].
    pub refresh: Option<u32>,
}

impl Mechanics {
    /// The defaults of scx_sfs.
    pub const DEFAULT: Self = Self {
        level: 1,
        margin: 1,
        tick_us: 4000,
        ageing: defaults::AGEING,
        refresh: None,
    };
}

impl Default for Mechanics {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Sort key: deadline or rank, start of the wait, id.
type Key = (u64, Time, JobId);

/// State of an invocation besides its [`Job`].
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The virtual time of its arrival.
    born: Time,
    /// Start of its wait; a preempted invocation keeps its place among equals.
    since: Time,
    /// What is left of a turn taken from overdue ones, while it waits: it was preempted.
    left: Time,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    id: JobId,
    began: Time,
    /// End of its phase.
    end: Time,
    /// End of its slice.
    over: Time,
    /// Its slice, if that was taken from overdue ones.
    taken: Time,
}

/// A policy that orders invocations by rank.
#[derive(Debug)]
pub struct Ranked<R> {
    cpus: u32,
    mechanics: Mechanics,
    rule: R,
    /// The virtual clock, and when it was last updated.
    clock: Time,
    now: Time,
    /// By id.
    places: Vec<Place>,
    waiting: BTreeSet<Key>,
    running: Vec<Run>,
    /// By then the budget will have paid for what was taken from overdue ones.
    overtaken_until: Time,
    /// Invocations that have arrived or woken since the last decision.
    fresh: Vec<JobId>,
    /// Invocations whose slice has ended since then.
    expired: Vec<JobId>,
}

impl<R: Rule> Ranked<R> {
    /// Creates the policy with the ranks of `rule`.
    pub fn new(settings: &Settings, rule: R) -> Self {
        Self {
            cpus: settings.cpus,
            mechanics: settings.mechanics,
            rule,
            clock: 0,
            now: 0,
            places: Vec::new(),
            waiting: BTreeSet::new(),
            running: Vec::new(),
            overtaken_until: 0,
            fresh: Vec::new(),
            expired: Vec::new(),
        }
    }

    /// Advances the virtual clock to `now`; `present` invocations have been
    /// ready since the last call.
    fn pass(&mut self, now: Time, present: usize) {
        let (cpus, present) = (u128::from(self.cpus), present as u128);
        let share = u128::from(now - self.now) * cpus / present.max(cpus);
        self.clock += share as Time;
        self.now = now;
    }

    fn rank(&self, id: JobId, attained: Time) -> u8 {
        self.rule.table(id).rank(attained / PER_NS)
    }

    /// The virtual time until which an invocation of this rank waits for later
    /// ones.
    fn deadline(&self, id: JobId, rank: u8) -> Time {
        if self.mechanics.ageing == 0.0 {
            return Time::MAX;
        }
        let cost = start_ns(rank.into()) as f64 * PER_NS as f64;
        let patience = (cost * self.mechanics.ageing) as Time;
        self.places[id as usize].born.saturating_add(patience)
    }

    fn key(&self, id: JobId, rank: u8) -> Key {
        let first = match self.deadline(id, rank) {
            Time::MAX => rank.into(),
            deadline => deadline,
        };
        (first, self.places[id as usize].since, id)
    }

    fn queue(&mut self, id: JobId, jobs: &[Job]) {
        let rank = self.rank(id, jobs[id as usize].attained);
        self.waiting.insert(self.key(id, rank));
    }

    /// Starts an invocation, until its rank worsens or, if that is given, for a
    /// turn.
    fn start(&mut self, id: JobId, turn: Option<Time>, now: Time, job: &mut Job) {
        job.runs(now);
        let worsens = self.rule.table(id).worsens_ns(job.attained / PER_NS);
        let slice = worsens.map_or(Time::MAX, |at| at * PER_NS - job.attained);
        let over = now.saturating_add(turn.unwrap_or(slice));
        self.running.push(Run {
            id,
            began: now,
            end: now + job.phase,
            over: match self.mechanics.tick_us * PER_US {
                0 => over,
                tick => over.div_ceil(tick).saturating_mul(tick),
            },
            taken: turn.unwrap_or(0),
        });
    }

    fn stop(&mut self, place: usize, now: Time, jobs: &mut [Job]) -> JobId {
        let run = self.running.swap_remove(place);
        jobs[run.id as usize].charge(now - run.began);
        let unused = self.left(&run, now);
        self.overtaken_until = self.overtaken_until.saturating_sub(self.price(unused));
        run.id
    }

    /// The rank of a running invocation at its last tick.
    fn rank_now(&self, run: &Run, now: Time, jobs: &[Job]) -> u8 {
        let tick = now.checked_div(self.mechanics.tick_us * PER_US);
        let seen = tick.map_or(now, |tick| tick * self.mechanics.tick_us * PER_US);
        let ran = seen.saturating_sub(run.began);
        self.rank(run.id, jobs[run.id as usize].attained + ran)
    }

    /// The place of the invocation that one of `rank` may preempt: the worst of
    /// those that are `overdue`, or that are not, if it is worse by the margin.
    fn worst(&self, overdue: bool, rank: u8, now: Time, jobs: &[Job]) -> Option<usize> {
        let ranks = self.running.iter().enumerate().map(|(place, run)| {
            let worse = self.rank_now(run, now, jobs);
            (self.key(run.id, worse), worse, place)
        });
        let is_overdue = |id, worse| self.deadline(id, worse) <= self.clock;
        let candidates = ranks.filter(|((_, _, id), worse, place)| {
            let takes = self.left(&self.running[*place], now) > 0;
            (takes || is_overdue(*id, *worse)) == overdue
        });
        let (_, worse, place) = candidates.max_by_key(|(key, worse, _)| (*worse, *key))?;
        let want = rank.saturating_add(self.mechanics.margin);
        (worse >= want).then_some(place)
    }

    /// The place of the invocation that `id` preempts, and the turn that it may take
    /// if that one is overdue.
    fn victim(&mut self, id: JobId, now: Time, jobs: &[Job]) -> Option<(usize, Option<Time>)> {
        let rank = self.rank(id, jobs[id as usize].attained);
        if let Some(place) = self.worst(false, rank, now, jobs) {
            return Some((place, None));
        }
        let place = self.worst(true, rank, now, jobs)?;
        let usual = 2 * start_ns(rank.into());
        let (shortest, longest) = defaults::OVERTAKE_TURN_NS;
        let turn = usual.clamp(shortest, longest) * PER_NS;
        self.may_overtake(turn, now).then_some((place, Some(turn)))
    }

    /// How long the budget pays for a turn.
    fn price(&self, turn: Time) -> Time {
        turn * defaults::OVERTAKE_PART / u64::from(self.cpus)
    }

    /// Whether the budget pays for a turn that is taken from overdue ones. What is
    /// not used of it goes back.
    fn may_overtake(&mut self, turn: Time, now: Time) -> bool {
        let until = self.overtaken_until.max(now) + self.price(turn);
        let pays = until <= now + defaults::OVERTAKE_NS * PER_NS;
        if pays {
            self.overtaken_until = until;
        }
        pays
    }

    /// What is left of a turn that was taken from overdue ones.
    fn left(&self, run: &Run, now: Time) -> Time {
        run.taken.saturating_sub(now - run.began)
    }

    /// Puts the invocation back into the queue. With a turn that is paid for, it goes on before all
    /// others.
    fn preempt(&mut self, place: usize, now: Time, jobs: &mut [Job]) {
        let left = self.left(&self.running[place], now);
        let id = self.stop(place, now, jobs);
        jobs[id as usize].preemptions += 1;
        if left == 0 {
            self.queue(id, jobs);
            return;
        }
        self.overtaken_until += self.price(left);
        let place = &mut self.places[id as usize];
        place.left = left;
        self.waiting.insert((0, place.since, id));
    }
}

impl<R: Rule> Policy for Ranked<R> {
    fn arrive(&mut self, _id: JobId, now: Time) {
        // Ids follow the order of arrival.
        self.places.push(Place {
            born: self.clock,
            since: now,
            left: 0,
        });
    }

    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]) {
        self.places[id as usize].since = now;
        self.queue(id, jobs);
        self.fresh.push(id);
    }

    fn next(&self) -> Option<Time> {
        let events = self.running.iter().map(|run| run.end.min(run.over));
        events.min()
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        self.pass(now, self.waiting.len() + self.running.len());
        for place in (0..self.running.len()).rev() {
            let run = self.running[place];
            if run.end <= now {
                self.stop(place, now, jobs);
                ended.push(run.id);
            } else if run.over <= now {
                self.places[run.id as usize].since = now;
                self.stop(place, now, jobs);
                self.queue(run.id, jobs);
                self.expired.push(run.id);
            }
        }
        for id in ended.iter() {
            let job = &jobs[*id as usize];
            if job.later == 0 {
                self.rule.completed(*id, job.attained / PER_NS);
            }
        }
    }

    fn settle(&mut self, now: Time, jobs: &mut [Job]) {
        while self.running.len() < self.cpus as usize {
            let Some((_, _, id)) = self.waiting.pop_first() else {
                break;
            };
            let left = std::mem::take(&mut self.places[id as usize].left);
            self.start(id, (left > 0).then_some(left), now, &mut jobs[id as usize]);
        }
        for id in std::mem::take(&mut self.expired) {
            let kept = self.running.iter().any(|run| run.id == id);
            jobs[id as usize].preemptions += u64::from(!kept);
        }
        for id in std::mem::take(&mut self.fresh) {
            let rank = self.rank(id, jobs[id as usize].attained);
            let key = self.key(id, rank);
            if !self.waiting.contains(&key) {
                continue;
            }
            if let Some((place, turn)) = self.victim(id, now, jobs) {
                self.preempt(place, now, jobs);
                self.waiting.remove(&key);
                self.start(id, turn, now, &mut jobs[id as usize]);
            }
        }
    }
}
