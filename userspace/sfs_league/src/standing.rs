//! Who has what over all seeds.

use crate::columns::{self, Column, Kind, OURS};
use crate::figures::Figure;
use crate::goals::{Goal, GOALS};
use crate::results::{Line, Results};
use faas_seeds::estimate::{Estimate, Observation};

/// The results of one workload.
#[derive(Debug)]
pub struct Standing<'a> {
    workload: &'a str,
    lines: Vec<&'a Line>,
}

/// A goal that is missed.
#[derive(Debug)]
pub struct Miss {
    /// The goal.
    pub goal: Goal,
    /// The rival that is the farthest ahead.
    pub rival: &'static str,
    /// Ours relative to it.
    pub ratio: Estimate,
}

impl Miss {
    /// By how much, relative to the goal: above 1.
    pub fn excess(&self) -> f64 {
        self.ratio.ratio / self.goal.most
    }

    /// Whether the interval of 95 % leaves no doubt.
    pub fn is_certain(&self) -> bool {
        let test = self.ratio.test;
        test.is_some_and(|test| test.low > self.goal.most)
    }
}

/// Whether both runs are of the same trace and machine. A simulation has no machine.
fn are_a_pair(one: &Line, other: &Line) -> bool {
    let is_simulated = |line: &Line| {
        let mut bounds = columns::ALL.iter().filter(|one| one.kind == Kind::Bound);
        bounds.any(|column| column.name == line.scheduler)
    };
    let machine = |line: &Line| line.machine.unwrap_or(0);
    one.seed == other.seed
        && (machine(one) == machine(other) || is_simulated(one) || is_simulated(other))
}

impl<'a> Standing<'a> {
    /// Those of a workload.
    pub fn of(results: &'a Results, workload: &'a str) -> Self {
        let lines = results.lines().iter();
        Self {
            workload,
            lines: lines.filter(|line| line.workload == workload).collect(),
        }
    }

    /// Whether there is any result.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The workload's name.
    pub fn workload(&self) -> &str {
        self.workload
    }

    /// The columns that have results, in the order of the page.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + '_ {
        let has = |name: &str| self.lines.iter().any(|line| line.scheduler == name);
        columns::ALL.iter().filter(move |column| has(column.name))
    }

    /// The number of seeds that a column has clean results of.
    pub fn seeds(&self, column: &str) -> usize {
        self.values(column, Figure::Mean).count()
    }

    /// The runs that have this figure, with it.
    fn values(&self, column: &str, figure: Figure) -> impl Iterator<Item = (&'a Line, f64)> + '_ {
        let column = column.to_string();
        let lines = self.lines.iter().copied();
        let lines = lines.filter(move |line| line.scheduler == column);
        lines.filter_map(move |line| Some((line, line.figures().get(figure)?)))
    }

    /// The geometric mean of a column's values.
    pub fn value(&self, column: &str, figure: Figure) -> Option<f64> {
        let of_seed = |(line, ratio): (&Line, _)| Observation {
            seed: line.seed,
            ratio,
        };
        let values: Vec<_> = self.values(column, figure).map(of_seed).collect();
        Estimate::of(&values).map(|estimate| estimate.ratio)
    }

    /// A column relative to another one, over the seeds of which both have a result of the same
    /// machine.
    pub fn ratio(&self, column: &str, base: &str, figure: Figure) -> Option<Estimate> {
        let of_base: Vec<_> = self.values(base, figure).collect();
        let observed: Vec<Observation> = self
            .values(column, figure)
            .filter_map(|(line, value)| {
                let (_, of_base) = of_base.iter().find(|(other, _)| are_a_pair(line, other))?;
                Some(Observation {
                    seed: line.seed,
                    ratio: value / of_base,
                })
            })
            .collect();
        Estimate::of(&observed)
    }

    /// The goals that scx_sfs without an option misses.
    pub fn misses(&self) -> Vec<Miss> {
        GOALS.iter().filter_map(|goal| self.miss(*goal)).collect()
    }

    fn miss(&self, goal: Goal) -> Option<Miss> {
        let rivals = self.columns().filter(|one| goal.rivals.include(one.kind));
        let ratio = |rival: &'static Column| {
            let ratio = self.ratio(OURS, rival.name, goal.figure)?;
            Some(Miss {
                goal,
                rival: rival.name,
                ratio,
            })
        };
        rivals
            .filter_map(ratio)
            .max_by(|one, other| one.ratio.ratio.total_cmp(&other.ratio.ratio))
            .filter(|worst| worst.ratio.ratio > goal.most)
    }

    /// The runs that are no clean measurement: scheduler, seed and what became of it.
    pub fn broken(&self) -> impl Iterator<Item = &'a Line> + '_ {
        let lines = self.lines.iter().copied();
        lines.filter(|line| line.status != "ok")
    }

    /// Whether scx_sfs without an option has a result of every seed that the kernel's scheduler has
    /// one of.
    pub fn is_complete(&self) -> bool {
        let is_bound = |kind| kind == Kind::Bound;
        let others = self.columns().filter(|column| !is_bound(column.kind));
        let ours = self.seeds(OURS);
        ours > 0 && others.map(|column| self.seeds(column.name)).max() == Some(ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Results with these mean turnarounds, in ms, of the seeds from 1 on.
    fn results(folder: &Path, of: &[(&str, &[f64])]) -> Results {
        let mut results = Results::read(&folder.join("league.csv")).unwrap();
        for (scheduler, values) in of {
            for (seed, value) in (1..).zip(*values) {
                let line = Line {
                    workload: "w".into(),
                    seed,
                    scheduler: (*scheduler).into(),
                    mean_slowdown: None,
                    p99_slowdown: None,
                    mean_ms: (*value > 0.0).then_some(*value),
                    short_ms: None,
                    long_ms: None,
                    p999_ms: None,
                    status: if *value > 0.0 { "ok" } else { "ejected: gone" }.into(),
                    kernel: String::new(),
                    machine: None,
                    commit: String::new(),
                    programs: String::new(),
                };
                results.put(line).unwrap();
            }
        }
        results
    }

    #[test]
    fn the_farthest_rival_is_named_and_only_beyond_the_goal() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(
            folder.path(),
            &[
                ("eevdf", &[10.0, 20.0]),
                ("scx_sfs", &[8.0, 16.0]),
                ("scx_bpfland", &[7.9, 15.8]),
                ("srtf", &[1.0, 2.0]),
            ],
        );
        let standing = Standing::of(&results, "w");
        assert!(standing.misses().is_empty(), "1.3 % are within 2 %");
        let folder = tempfile::tempdir().unwrap();
        let results = self::results(
            folder.path(),
            &[
                ("eevdf", &[10.0, 20.0]),
                ("scx_sfs", &[8.0, 16.0]),
                ("scx_sfs+sfs", &[1.0, 1.0]),
                ("scx_bpfland", &[4.0, 16.0]),
                ("scx_cosmos", &[6.0, 12.0]),
            ],
        );
        let standing = Standing::of(&results, "w");
        let misses = standing.misses();
        assert_eq!(misses.len(), 1);
        assert_eq!(misses[0].rival, "scx_bpfland");
        assert!((misses[0].ratio.ratio - 2f64.sqrt()).abs() < 1e-12);
        assert!(!misses[0].is_certain(), "two seeds with 2 and 1");
    }

    #[test]
    fn runs_of_different_machines_are_not_compared() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = results(
            folder.path(),
            &[
                ("eevdf", &[10.0, 20.0]),
                ("scx_sfs", &[8.0, 4.0]),
                ("srtf", &[1.0, 2.0]),
            ],
        );
        for scheduler in ["eevdf", "scx_sfs"] {
            let line = results.line("w", 2, scheduler).unwrap().clone();
            let machine = (scheduler == "scx_sfs").then_some(2);
            results.put(Line { machine, ..line }).unwrap();
        }
        let standing = Standing::of(&results, "w");
        let ratio = standing.ratio("scx_sfs", "eevdf", Figure::Mean).unwrap();
        assert_eq!((ratio.seeds, ratio.ratio), (1, 0.8));
        let ratio = standing.ratio("scx_sfs", "srtf", Figure::Mean).unwrap();
        assert_eq!(ratio.seeds, 2, "a simulation has no machine");
    }

    #[test]
    fn a_run_that_was_lost_counts_for_nobody_and_makes_ours_incomplete() {
        let folder = tempfile::tempdir().unwrap();
        let results = results(
            folder.path(),
            &[("eevdf", &[10.0, 20.0]), ("scx_sfs", &[8.0, 0.0])],
        );
        let standing = Standing::of(&results, "w");
        assert!(!standing.is_complete());
        assert_eq!(standing.seeds("scx_sfs"), 1);
        let broken: Vec<&str> = standing.broken().map(|line| &line.status[..]).collect();
        assert_eq!(broken, ["ejected: gone"]);
        let ratio = standing.ratio("scx_sfs", "eevdf", Figure::Mean).unwrap();
        assert_eq!((ratio.seeds, ratio.ratio), (1, 0.8));
        assert!(standing.ratio("scx_sfs", "eevdf", Figure::Long).is_none());
    }
}
