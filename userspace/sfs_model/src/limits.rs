//! What is left of a seed's machine: a short line of options, with which a run shows the same
//! finding with fewer CPUs, tasks and kinds of events. What is left draws the random numbers that
//! it drew before, as far as it has numbers of its own.

use crate::loader::plan::Plan;
use anyhow::{anyhow, bail, ensure, Context, Error, Result};
use sfs_fibers::Races;
use sfs_kernel_model::group_load::GroupLoad;
use sfs_kernel_model::oddities::Oddities;
use sfs_kernel_model::topology;
use sfs_kernel_model::workload::Workload;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Kinds of events that a machine can do without.
pub const CLASSES: [&str; 20] = [
    "races", "changes", "groups", "pinned", "bursts", "realtime", "sections", "families",
    "topology", "loader", "stall", "death", "readers", "learned", "shards", "nomemory", "hints",
    "drift", "bypass", "newer",
];

/// A selection; by default everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Number of CPUs; `None`: as many as the seed draws.
    pub cpus: Option<usize>,
    /// The residents that are there, by their numbers; `None`: all.
    pub residents: Option<BTreeSet<u64>>,
    /// The functions that arrive, by their numbers; `None`: all.
    pub functions: Option<BTreeSet<u64>>,
    /// The changes of nice values and affinities that happen, by their numbers; `None`: all.
    pub changes: Option<BTreeSet<u64>>,
    /// Members of [`CLASSES`] that do not happen.
    pub without: BTreeSet<String>,
}

impl Limits {
    /// Takes away from what a seed has drawn.
    pub fn apply(&self, workload: &mut Workload) {
        workload.cpus = self.cpus.unwrap_or(workload.cpus);
        if self.lacks("topology") || workload.topology.len() < workload.cpus {
            workload.topology = topology::flat(workload.cpus);
        }
        workload.real_time = workload.real_time.filter(|_| !self.lacks("realtime"));
        if let Some(kind) = &mut workload.real_time {
            kind.cpus = kind.cpus.min(workload.cpus as u64);
        }
        if self.lacks("groups") {
            workload.groups = GroupLoad::default();
        }
        if self.lacks("drift") {
            workload.groups.drift_ppm = 0;
        }
        if self.lacks("sections") {
            workload.habits.stays_of = 0;
        }
        if self.lacks("families") {
            workload.habits.has_families = false;
        }
        if self.lacks("changes") {
            workload.changes_ns = 0;
        }
        if self.lacks("pinned") {
            workload.pinned_of = u64::MAX;
        }
        if self.lacks("bursts") {
            workload.burst_ns = 0;
        }
        if self.lacks("learned") {
            workload.policy = 0;
        }
    }

    /// The same for oddities.
    pub fn apply_to_oddities(&self, of: Oddities) -> Oddities {
        let keeps = |class, value, none| if self.lacks(class) { none } else { value };
        Oddities {
            shards: keeps("shards", u64::from(of.shards), 1) as u32,
            no_memory_of: keeps("nomemory", of.no_memory_of, 0),
            hints_ns: keeps("hints", of.hints_ns, 0),
            bypass_ns: keeps("bypass", of.bypass_ns, 0),
            confines_first: of.confines_first && !self.lacks("newer"),
        }
    }

    /// The same for pauses of callbacks.
    pub fn apply_to_races(&self, races: Option<Races>) -> Option<Races> {
        races.filter(|_| !self.lacks("races"))
    }

    /// The same for the loader.
    pub fn apply_to_loader(&self, plan: Plan) -> Option<Plan> {
        let keeps = |class| !self.lacks(class);
        keeps("loader").then_some(Plan {
            stalls: plan.stalls.filter(|_| keeps("stall")),
            dies_ns: plan.dies_ns.filter(|_| keeps("death")),
            readers_ns: if keeps("readers") { plan.readers_ns } else { 0 },
            learns: plan.learns.filter(|_| keeps("learned")),
            ..plan
        })
    }

    /// Whether a resident is there.
    pub fn has_resident(&self, number: u64) -> bool {
        self.residents
            .as_ref()
            .is_none_or(|all| all.contains(&number))
    }

    /// Whether a function arrives.
    pub fn has_function(&self, number: u64) -> bool {
        self.functions
            .as_ref()
            .is_none_or(|all| all.contains(&number))
    }

    /// Whether a nice value or an affinity is changed.
    pub fn has_change(&self, number: u64) -> bool {
        self.changes
            .as_ref()
            .is_none_or(|all| all.contains(&number))
    }

    fn lacks(&self, class: &str) -> bool {
        self.without.contains(class)
    }
}

/// `cpus=2,residents=0.3-5,functions=none,without=changes.loader`; empty: everything.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        words.extend(self.cpus.map(|cpus| format!("cpus={cpus}")));
        let sets = [
            ("residents", &self.residents),
            ("functions", &self.functions),
            ("changes", &self.changes),
        ];
        for (name, set) in sets {
            words.extend(set.as_ref().map(|set| format!("{name}={}", ranges(set))));
        }
        if !self.without.is_empty() {
            let without: Vec<&str> = self.without.iter().map(String::as_str).collect();
            words.push(format!("without={}", without.join(".")));
        }
        f.write_str(&words.join(","))
    }
}

fn ranges(set: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in set {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(u64, u64)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    if ranges.is_empty() {
        return "none".to_string();
    }
    ranges.iter().map(text).collect::<Vec<_>>().join(".")
}

impl FromStr for Limits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut limits = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').context("a word without =")?;
            match name {
                "cpus" => limits.cpus = Some(cpus(value)?),
                "residents" => limits.residents = Some(numbers(value)?),
                "functions" => limits.functions = Some(numbers(value)?),
                "changes" => limits.changes = Some(numbers(value)?),
                "without" => limits.without = classes(value)?,
                _ => bail!("{name} is none of cpus, residents, functions, changes, without"),
            }
        }
        Ok(limits)
    }
}

fn cpus(value: &str) -> Result<usize> {
    let cpus = value.parse().context("cpus= takes a number")?;
    ensure!((1..=1024).contains(&cpus), "cpus= takes 1 to 1024");
    Ok(cpus)
}

fn classes(value: &str) -> Result<BTreeSet<String>> {
    let known = |class: &str| match CLASSES.contains(&class) {
        true => Ok(class.to_string()),
        false => Err(anyhow!("{class} is none of {}", CLASSES.join(", "))),
    };
    value.split('.').map(known).collect()
}

fn numbers(value: &str) -> Result<BTreeSet<u64>> {
    let mut set = BTreeSet::new();
    for range in value.split('.').filter(|_| value != "none") {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            text.parse::<u64>()
                .with_context(|| format!("{text} is no number"))
        };
        let (first, last) = (number(first)?, number(last)?);
        ensure!(
            last < first.saturating_add(1_000_000),
            "{range} is too long"
        );
        set.extend(first..=last);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        for line in [
            "",
            "cpus=2",
            "cpus=1,residents=none,functions=0-3.7.9-10,changes=2,without=loader.pinned",
        ] {
            assert_eq!(line.parse::<Limits>().unwrap().to_string(), line);
        }
        let limits: Limits = "residents=3-5".parse().unwrap();
        assert!(limits.has_resident(4) && !limits.has_resident(6) && limits.has_function(6));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "cpus",
            "cpus=0",
            "cpus=x",
            "tasks=1",
            "residents=1-x",
            "without=dirt",
        ] {
            assert!(line.parse::<Limits>().is_err(), "{line}");
        }
    }
}
