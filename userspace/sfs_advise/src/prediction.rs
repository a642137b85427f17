//! The recording under each scheduler: measured, replayed on the simulated kernel, or estimated.

use anyhow::Result;
use faas_data::measure::shortest;
use faas_data::stats::{mean, nearest_rank, round, sorted};
use faas_data::trace::{self, Invocation};
use serde::Serialize;
use sfs_sim::policy::{Kind, Settings};
use sfs_text::note;

use crate::program::NAME;
use crate::recording::{Other, Recording};
use crate::replayer::Job;
use crate::seen::Seen;

/// How figures were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Seen on this machine.
    Measured,
    /// The kernel half of scx_sfs on the simulated kernel.
    SimulatedKernel,
    /// Equal shares for all (processor sharing), which EEVDF aims at.
    EqualShares,
}

impl Source {
    /// Returns its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::SimulatedKernel => "simulated kernel",
            Self::EqualShares => "estimate: equal shares",
        }
    }
}

/// What a scheduler is to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It is the kernel's own, which scx_sfs would replace.
    Base,
    /// It is loaded now, and is not the kernel's own.
    Present,
    /// scx_sfs with `--policy sfs`.
    Sfs,
    /// scx_sfs without options.
    Default,
    /// To judge the others by: no scheduler.
    Reference,
}

/// Turnarounds of invocations, ms; null: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Turnarounds {
    /// The mean.
    pub mean_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
    /// Mean slowdown: turnaround / (service time + time blocked).
    pub mean_slowdown: Option<f64>,
}

/// The figures of one scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Its name.
    pub scheduler: String,
    /// What it is here.
    pub role: Role,
    /// How they were found.
    pub source: Source,
    /// Invocations that have ended, of those that count.
    pub ended: usize,
    /// Of all.
    pub all: Turnarounds,
    /// Of the shortest 83 % by service time.
    pub short: Turnarounds,
    /// Of the others.
    pub long: Turnarounds,
    /// What is wrong with it, if anything.
    pub findings: Vec<String>,
}

/// Predicts the figures of each scheduler: the kernel's own first, then the present one if it is
/// another, then scx_sfs.
///
/// # Errors
/// If the simulated kernel fails.
pub fn predict(recording: &Recording, seen: &Seen) -> Result<Vec<Prediction>> {
    let judges = Judges::of(recording);
    let turnarounds = |row: &mut Prediction, of: Vec<Option<u64>>| judges.fill(row, &of);
    let estimate = equal_shares(recording)?;
    let own = recording.scheduler.is_own();
    let is_measured = recording.others.is_some();
    let name = if own {
        recording.scheduler.name()
    } else {
        "EEVDF"
    };
    let mut rows = Vec::new();
    if is_measured {
        let role = if own { Role::Base } else { Role::Present };
        let mut row = Prediction::new(recording.scheduler.name(), role, Source::Measured);
        let measured = recording.all.iter().map(|one| one.turnaround_us);
        turnarounds(&mut row, measured.collect());
        rows.push(row);
    }
    let role = if own && is_measured {
        Role::Reference
    } else {
        Role::Base
    };
    let mut row = Prediction::new(name, role, Source::EqualShares);
    turnarounds(&mut row, estimate);
    rows.push(row);
    for (policy, name, role) in [
        ("sfs", "scx_sfs --policy sfs", Role::Sfs),
        ("learned", "scx_sfs", Role::Default),
    ] {
        note(&format!(
            "{NAME}: {} invocations on the simulated kernel under {name}",
            recording.all.len()
        ));
        let replayed = job(recording, seen, policy).run()?;
        let mut row = Prediction::new(name, role, Source::SimulatedKernel);
        turnarounds(&mut row, since_arrival(recording, &replayed.ends_us));
        row.findings = replayed.findings;
        rows.push(row);
    }
    Ok(rows)
}

/// From arrival to end, us.
fn since_arrival(recording: &Recording, ends_us: &[Option<u64>]) -> Vec<Option<u64>> {
    let pairs = recording.all.iter().zip(ends_us);
    pairs
        .map(|(one, end)| end.map(|end| end.saturating_sub(one.invocation.arrival_us)))
        .collect()
}

fn equal_shares(recording: &Recording) -> Result<Vec<Option<u64>>> {
    let trace = recording.stretched_trace();
    let outcomes = sfs_sim::simulate(&trace, Kind::Ps, &Settings::new(recording.cpus))?;
    let ends: Vec<Option<u64>> = outcomes.iter().map(|one| Some(one.end_us())).collect();
    Ok(since_arrival(recording, &ends))
}

fn job(recording: &Recording, seen: &Seen, policy: &str) -> Job {
    let others = seen.others.unwrap_or_default();
    let kinds = [(others.kernel, true), (others.processes, false)];
    let each = kinds
        .into_iter()
        .filter_map(|(other, is_kernel)| task(other, is_kernel));
    let each: Vec<(u64, u64, bool)> = each.collect();
    Job {
        trace: trace::to_csv(&recording.trace()),
        policy: policy.to_owned(),
        cpus: recording.cpus,
        // One of each kind for each CPU.
        others: (0..recording.cpus).flat_map(|_| each.clone()).collect(),
    }
}

/// Other work as a task that uses its share of a CPU in turns of that length: CPU time of a turn
/// and sleep, us, and whether it is a kernel thread. `None`: there is hardly any.
fn task(other: Other, is_kernel: bool) -> Option<(u64, u64, bool)> {
    /// Less than this is not worth the events.
    const LEAST_SHARE: f64 = 1e-4;
    if other.share < LEAST_SHARE {
        return None;
    }
    let runs_us = other.turn_us.round().max(1.0);
    let sleeps_us = runs_us * (1.0 - other.share) / other.share;
    Some((runs_us as u64, sleeps_us.round() as u64, is_kernel))
}

/// The invocations that count, and which of them are short.
struct Judges {
    /// Place in the recording, uncontended duration in us, and whether it is short.
    all: Vec<(usize, u64, bool)>,
}

impl Judges {
    fn of(recording: &Recording) -> Self {
        let judged = recording.all.iter().enumerate();
        let judged: Vec<_> = judged.filter(|(_, one)| one.is_judged).collect();
        let trace: Vec<Invocation> = judged
            .iter()
            .map(|(_, one)| one.invocation.clone())
            .collect();
        let is_short = shortest(&trace);
        let pairs = judged.iter().zip(&trace).zip(is_short);
        let judge = pairs.map(|(((place, _), one), short)| (*place, one.uncontended_us(), short));
        Self {
            all: judge.collect(),
        }
    }

    /// Writes the figures of these turnarounds in us, in the order of the recording, into `row`.
    fn fill(&self, row: &mut Prediction, turnarounds_us: &[Option<u64>]) {
        let pair = |&(place, least_us, is_short): &(usize, u64, bool)| {
            let us = (*turnarounds_us.get(place)?)?;
            Some((
                us as f64 / 1e3,
                us as f64 / least_us.max(1) as f64,
                is_short,
            ))
        };
        let all: Vec<(f64, f64, bool)> = self.all.iter().filter_map(pair).collect();
        row.ended = all.len();
        row.all = Turnarounds::of(all.iter().copied());
        row.short = Turnarounds::of(all.iter().copied().filter(|one| one.2));
        row.long = Turnarounds::of(all.iter().copied().filter(|one| !one.2));
    }
}

impl Turnarounds {
    /// Of turnarounds in ms and slowdowns.
    fn of(all: impl Iterator<Item = (f64, f64, bool)>) -> Self {
        let (ms, slowdowns): (Vec<f64>, Vec<f64>) = all.map(|(ms, slow, _)| (ms, slow)).unzip();
        let p99 = |ms: Vec<f64>| nearest_rank(&sorted(ms), 99, 100);
        Self {
            mean_ms: mean(&ms).map(|ms| round(ms, 3)),
            mean_slowdown: mean(&slowdowns).map(|of| round(of, 4)),
            p99_ms: (!ms.is_empty()).then(|| round(p99(ms), 3)),
        }
    }
}

impl Prediction {
    fn new(scheduler: &str, role: Role, source: Source) -> Self {
        let none = Turnarounds::of(std::iter::empty());
        Self {
            scheduler: scheduler.to_owned(),
            role,
            source,
            ended: 0,
            all: none,
            short: none,
            long: none,
            findings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Scheduler;

    #[test]
    fn other_work_becomes_turns_and_sleeps_of_its_share() {
        let other = |share, turn_us| Other { share, turn_us };
        assert_eq!(task(other(0.2, 1_000.0), true), Some((1_000, 4_000, true)));
        assert_eq!(task(other(0.01, 0.2), false), Some((1, 99, false)));
        assert_eq!(task(other(0.00009, 50.0), true), None);
        assert_eq!(task(other(1.0, 50.0), true), Some((50, 0, true)));
    }

    #[test]
    fn figures_are_those_of_the_invocations_that_count() {
        let trace: Vec<Invocation> = (1..=6)
            .map(|id| Invocation::cpu(id * 1_000, "f", id * 10_000))
            .collect();
        let mut recording = Recording::of_trace(&trace, 1, Scheduler::Eevdf);
        recording.all[0].is_judged = false;
        let ends = [None, Some(22), Some(63), Some(44), None, Some(66)];
        let ends = ends.map(|ms: Option<u64>| ms.map(|ms| ms * 1_000));
        let mut row = Prediction::new("x", Role::Base, Source::Measured);
        Judges::of(&recording).fill(&mut row, &since_arrival(&recording, &ends));
        assert_eq!(row.ended, 4);
        // 20, 60, 40 and 60 ms: of five that count, ceil(4.15) are short, so all.
        assert_eq!((row.all.mean_ms, row.long.mean_ms), (Some(45.0), None));
        assert_eq!(row.short.mean_slowdown, Some((1.0 + 2.0 + 1.0 + 1.0) / 4.0));
        assert_eq!(row.all.p99_ms, Some(60.0));
    }

    #[test]
    fn equal_shares_are_of_what_other_work_leaves() {
        let trace = [
            Invocation::cpu(0, "f", 10_000),
            Invocation::cpu(0, "g", 10_000),
        ];
        let mut recording = Recording::of_trace(&trace, 1, Scheduler::Eevdf);
        let found = equal_shares(&recording).unwrap();
        assert_eq!(found, [Some(20_000), Some(20_000)]);
        let processes = Other {
            share: 0.5,
            turn_us: 100.0,
        };
        recording.others = Some(crate::recording::Others {
            processes,
            ..Default::default()
        });
        let found = equal_shares(&recording).unwrap();
        assert_eq!(found, [Some(40_000), Some(40_000)]);
    }
}
