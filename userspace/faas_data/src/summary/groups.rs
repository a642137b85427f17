//! Numbers of some of the invocations: the short, the long, a class, a
//! function.
//!
//! *Jitter* is the spread of a group: interquartile range and variance of
//! turnaround (milliseconds, milliseconds squared) and of slowdown. The
//! variance is that of all its invocations, not an estimate for a population.

use crate::measure::Measure;
use crate::stats::{mean, nearest_rank, ratio, round, Spread, Stats};
use crate::trace::Invocation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Some of the invocations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Number of completed invocations.
    pub invocations: usize,
    /// Number of failed invocations.
    #[serde(default)]
    pub failed: usize,
    /// Their turnaround.
    pub turnaround_ms: Option<Stats>,
    /// Their slowdown.
    pub slowdown: Option<Stats>,
    /// Their queue delay.
    #[serde(default)]
    pub queue_delay_ms: Option<Stats>,
    /// Their run-time effectiveness.
    #[serde(default)]
    pub rte: Option<Rte>,
    /// The spread of turnaround and slowdown.
    #[serde(default)]
    pub jitter: Option<Jitter>,
}

/// The spread of turnaround and slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Of turnaround, in milliseconds and milliseconds squared.
    pub turnaround_ms: Spread,
    /// Of slowdown.
    pub slowdown: Spread,
}

/// Run-time effectiveness: uncontended duration / turnaround.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rte {
    /// The mean.
    pub mean: f64,
    /// Share of invocations with 0.95 or more.
    pub at_least_095: f64,
    /// Share of invocations with less than 0.2.
    pub below_02: f64,
}

/// One function. There may be many, so it has fewer numbers than a [`Group`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Number of completed invocations.
    pub invocations: usize,
    /// Number of failed invocations.
    pub failed: usize,
    /// Mean service time of all its invocations, in milliseconds.
    pub service_ms: f64,
    /// Turnaround.
    pub turnaround_ms: Option<Brief>,
    /// Slowdown.
    pub slowdown: Option<Brief>,
    /// Queue delay.
    pub queue_delay_ms: Option<Brief>,
    /// Mean run-time effectiveness.
    pub rte: Option<f64>,
}

/// The numbers of a [`Function`]: a few of [`Stats`], and [`Spread`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// Interquartile range.
    pub iqr: f64,
    /// Variance.
    pub variance: f64,
}

impl Brief {
    fn new(mean: f64, p50: f64, p99: f64, spread: Spread) -> Self {
        Self {
            mean,
            p50,
            p99,
            iqr: spread.iqr,
            variance: spread.variance,
        }
    }

    fn of_sorted_us(sorted: &[u64]) -> Option<Self> {
        let stats = Stats::of_sorted_us(sorted)?;
        let spread = Spread::of_sorted_us(sorted)?;
        Some(Self::new(stats.mean, stats.p50, stats.p99, spread))
    }

    fn of_sorted_ratios(sorted: &[f64]) -> Option<Self> {
        let spread = Spread::of_sorted_ratios(sorted)?;
        let at = |per_cent| ratio(nearest_rank(sorted, per_cent, 100));
        Some(Self::new(ratio(mean(sorted)?), at(50), at(99), spread))
    }
}

impl Group {
    /// The invocations for whose rows in the trace `belongs` is true; `done`
    /// are all completed ones.
    pub(super) fn of(
        invocations: &[Invocation],
        done: &[Measure],
        belongs: impl Fn(usize) -> bool,
    ) -> Self {
        let members = (0..invocations.len()).filter(|id| belongs(*id)).count();
        let done: Vec<Measure> = done.iter().filter(|one| belongs(one.id)).copied().collect();
        Self::of_members(members, &done)
    }

    fn of_members(members: usize, done: &[Measure]) -> Self {
        let sorted = Sorted::of(done);
        let jitter = || {
            Some(Jitter {
                turnaround_ms: Spread::of_sorted_us(&sorted.turnaround_us)?,
                slowdown: Spread::of_sorted_ratios(&sorted.slowdown)?,
            })
        };
        Self {
            invocations: done.len(),
            failed: members - done.len(),
            turnaround_ms: Stats::of_sorted_us(&sorted.turnaround_us),
            slowdown: Stats::of_sorted_ratios(&sorted.slowdown),
            queue_delay_ms: Stats::of_sorted_us(&sorted.queue_delay_us),
            rte: rte(done),
            jitter: jitter(),
        }
    }
}

impl Function {
    fn of_members(members: usize, service_us: u64, done: &[Measure]) -> Self {
        let sorted = Sorted::of(done);
        let service_ms = service_us as f64 / 1e3 / members.max(1) as f64;
        Self {
            invocations: done.len(),
            failed: members - done.len(),
            service_ms: round(service_ms, 3),
            turnaround_ms: Brief::of_sorted_us(&sorted.turnaround_us),
            slowdown: Brief::of_sorted_ratios(&sorted.slowdown),
            queue_delay_ms: Brief::of_sorted_us(&sorted.queue_delay_us),
            rte: rte(done).map(|rte| rte.mean),
        }
    }
}

/// The classes by name, without invocations that have no class.
pub(super) fn classes(invocations: &[Invocation], done: &[Measure]) -> BTreeMap<String, Group> {
    let name = |one: &Invocation| one.class.map(|class| class.to_string());
    split(invocations, done, name)
        .into_iter()
        .map(|(name, part)| (name, Group::of_members(part.members, &part.done)))
        .collect()
}

/// The functions by name.
pub(super) fn functions(
    invocations: &[Invocation],
    done: &[Measure],
) -> BTreeMap<String, Function> {
    split(invocations, done, |one| Some(one.function.as_str()))
        .into_iter()
        .map(|(name, part)| {
            let function = Function::of_members(part.members, part.service_us, &part.done);
            (name.to_string(), function)
        })
        .collect()
}

/// A group under construction.
#[derive(Default)]
struct Part {
    members: usize,
    service_us: u64,
    done: Vec<Measure>,
}

/// The groups of invocations by `name`.
fn split<'a, K: Ord>(
    invocations: &'a [Invocation],
    done: &[Measure],
    name: impl Fn(&'a Invocation) -> Option<K>,
) -> BTreeMap<K, Part> {
    let mut parts: BTreeMap<K, Part> = BTreeMap::new();
    for one in invocations {
        let Some(name) = name(one) else { continue };
        let part = parts.entry(name).or_default();
        part.members += 1;
        part.service_us += one.service_us();
    }
    for one in done {
        let part = name(&invocations[one.id]).and_then(|name| parts.get_mut(&name));
        if let Some(part) = part {
            part.done.push(*one);
        }
    }
    parts
}

/// The values of some invocations, each kind sorted.
struct Sorted {
    turnaround_us: Vec<u64>,
    queue_delay_us: Vec<u64>,
    slowdown: Vec<f64>,
}

impl Sorted {
    fn of(done: &[Measure]) -> Self {
        let sorted = |of: fn(&Measure) -> u64| {
            let mut values: Vec<u64> = done.iter().map(of).collect();
            values.sort_unstable();
            values
        };
        let mut slowdown: Vec<f64> = done.iter().map(|one| one.slowdown).collect();
        slowdown.sort_by(f64::total_cmp);
        Self {
            turnaround_us: sorted(|one| one.turnaround_us),
            queue_delay_us: sorted(|one| one.queue_delay_us),
            slowdown,
        }
    }
}

fn rte(done: &[Measure]) -> Option<Rte> {
    let all: Vec<f64> = done.iter().map(Measure::rte).collect();
    let share = |wanted: fn(&f64) -> bool| {
        let count = all.iter().filter(|rte| wanted(rte)).count();
        ratio(count as f64 / all.len() as f64)
    };
    Some(Rte {
        mean: ratio(mean(&all)?),
        at_least_095: share(|rte| *rte >= 0.95),
        below_02: share(|rte| *rte < 0.2),
    })
}
