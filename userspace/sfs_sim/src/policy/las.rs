//! Least attained service first: the CPUs go to the invocations that have had
//! the least CPU time so far; equals share. Also called foreground-background.
//!
//! Of the policies that do not know durations it has the lowest mean turnaround
//! where long service so far predicts long remaining service, as in FaaS
//! (Kleinrock 1976, sec. 4.6; Righter & Shanthikumar 1989). Service counts over
//! the whole invocation, across its I/O.
//!
//! Invocations with equal attained service form a group that advances as one.
//! On c CPUs the lowest groups have a CPU for each member, at most one group
//! shares the remaining CPUs, and the rest wait: at most the first c groups
//! advance at any time.

use super::Policy;
use crate::job::{Job, JobId};
use crate::time::{self, Attained, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Invocations with the same attained service.
#[derive(Debug, Default)]
struct Group {
    level: Attained,
    /// The level at which the phase of each ends.
    ends: BinaryHeap<Reverse<(Attained, JobId)>>,
    /// Whether it has had a share since the last decision.
    running: bool,
    /// Number of times it lost its whole share.
    stops: u64,
}

impl Group {
    fn members(&self) -> u32 {
        self.ends.len() as u32
    }
}

/// The level of two groups that have met. They may have met between ticks and
/// be less than one tick apart; the sum of what all members have attained is
/// then preserved.
fn common_level(one: &Group, other: &Group) -> Attained {
    let (low, high) = if one.level < other.level {
        (one, other)
    } else {
        (other, one)
    };
    let (above, all) = (high.members(), low.members() + high.members());
    low.level + (high.level - low.level) * Attained::from(above) / Attained::from(all)
}

/// The policy `las`.
#[derive(Debug)]
pub struct Las {
    cpus: u32,
    now: Time,
    /// The groups with a share of the CPUs, lowest level first. All but the
    /// last have a CPU for each member.
    active: Vec<Group>,
    /// The groups without a share, by level; none is below an active one.
    idle: BTreeMap<Attained, Group>,
    /// For each invocation, the stops of its group when it joined.
    stops_before: Vec<u64>,
}

impl Las {
    /// Creates the policy for `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        Self {
            cpus,
            now: 0,
            active: Vec::new(),
            idle: BTreeMap::new(),
            stops_before: Vec::new(),
        }
    }

    /// The active groups, each with its rate as numerator and denominator.
    fn rates(&self) -> impl Iterator<Item = (&Group, u32, u32)> {
        self.active.iter().scan(self.cpus, |left, group| {
            let members = group.members();
            let share = members.min(*left);
            *left -= share;
            Some((group, share, members))
        })
    }

    /// When the last active group, with a rate below 1, meets another group:
    /// the one below catches up with it, or it catches up with the first idle
    /// one.
    fn next_meeting(&self) -> Option<Time> {
        let (last, share, members) = self.rates().last()?;
        let above = self.idle.first_key_value();
        let above = above.map(|(level, _)| time::duration(level - last.level, share, members));
        let below = self.active.iter().rev().nth(1);
        let below = below.filter(|_| share < members).map(|below| {
            let distance = last.level - below.level;
            time::duration(distance, members - share, members)
        });
        let wait = above.into_iter().chain(below).min()?;
        Some(self.now.saturating_add(wait))
    }

    /// Records how often `id` was stopped as a member of `group`, which it
    /// leaves.
    fn leave(&self, group: &Group, id: JobId, jobs: &mut [Job]) {
        let stops = group.stops - self.stops_before[id as usize];
        jobs[id as usize].preemptions += stops;
    }

    /// Merges two groups that have met. Members move from the smaller group to
    /// the larger one, so that each moves O(log n) times.
    fn merge(&mut self, one: Group, other: Group, jobs: &mut [Job]) -> Group {
        let level = common_level(&one, &other);
        let (mut large, mut small) = (one, other);
        if large.ends.len() < small.ends.len() {
            std::mem::swap(&mut large, &mut small);
        }
        for Reverse((_, id)) in &small.ends {
            self.leave(&small, *id, jobs);
            self.stops_before[*id as usize] = large.stops;
        }
        large.ends.append(&mut small.ends);
        large.level = level;
        large.running |= small.running;
        large
    }

    fn merge_met(&mut self, jobs: &mut [Job]) {
        let mut index = 1;
        while index < self.active.len() {
            if self.active[index - 1].level < self.active[index].level {
                index += 1;
                continue;
            }
            let (above, below) = (self.active.remove(index), self.active.remove(index - 1));
            let merged = self.merge(below, above, jobs);
            self.active.insert(index - 1, merged);
        }
        while let (Some(last), Some(first)) = (self.active.last(), self.idle.first_entry()) {
            if last.level < *first.key() {
                return;
            }
            let above = first.remove();
            if let Some(below) = self.active.pop() {
                let merged = self.merge(below, above, jobs);
                self.active.push(merged);
            }
        }
    }

    /// Assigns the CPUs to the lowest groups.
    fn distribute(&mut self, jobs: &mut [Job]) {
        let mut left = self.cpus;
        let mut groups = std::mem::take(&mut self.active).into_iter();
        while left > 0 {
            let idle = || self.idle.pop_first().map(|(_, group)| group);
            let Some(mut group) = groups.next().or_else(idle) else {
                return;
            };
            left -= group.members().min(left);
            group.running = true;
            self.active.push(group);
        }
        for mut group in groups {
            group.stops += u64::from(group.running);
            group.running = false;
            if let Some(met) = self.idle.remove(&group.level) {
                group = self.merge(group, met, jobs);
            }
            self.idle.insert(group.level, group);
        }
    }
}

impl Policy for Las {
    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]) {
        let job = &mut jobs[id as usize];
        // A new invocation is at the lowest level, so it runs at once.
        job.runs(now);
        let level = time::attained(job.attained);
        let end = level + time::attained(job.phase);
        let place = self.active.partition_point(|group| group.level < level);
        let group = if place < self.active.len() {
            if self.active[place].level > level {
                self.active.insert(place, Group::default());
            }
            &mut self.active[place]
        } else {
            self.idle.entry(level).or_default()
        };
        group.level = level;
        group.ends.push(Reverse((end, id)));
        if self.stops_before.len() <= id as usize {
            self.stops_before.resize(id as usize + 1, 0);
        }
        self.stops_before[id as usize] = group.stops;
    }

    fn next(&self) -> Option<Time> {
        let end = |(group, share, members): (&Group, u32, u32)| {
            let Reverse((end, _)) = group.ends.peek()?;
            let left = end.saturating_sub(group.level);
            Some(self.now + time::duration(left, share, members))
        };
        let ends = self.rates().filter_map(end);
        ends.chain(self.next_meeting()).min()
    }

    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>) {
        let passed = now - self.now;
        self.now = now;
        let mut left = self.cpus;
        let mut active = std::mem::take(&mut self.active);
        for group in &mut active {
            let members = group.members();
            let share = members.min(left);
            left -= share;
            group.level += time::progress(passed, share, members);
            while let Some(Reverse((end, id))) = group.ends.peek().copied() {
                if end > group.level {
                    break;
                }
                group.ends.pop();
                self.leave(group, id, jobs);
                let job = &mut jobs[id as usize];
                job.charge(job.phase);
                ended.push(id);
            }
        }
        active.retain(|group| !group.ends.is_empty());
        self.active = active;
    }

    fn settle(&mut self, _now: Time, jobs: &mut [Job]) {
        // Distribute before merging the groups that have just met: a group that
        // stops now counts a stop; a waiting group that it met does not.
        self.distribute(jobs);
        self.merge_met(jobs);
        self.distribute(jobs);
    }
}
