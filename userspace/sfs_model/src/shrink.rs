//! Makes the finding of a seed small: the same kind of finding with less time, fewer CPUs, fewer
//! tasks and fewer kinds of events. Each try is a run in a process of its own.

use crate::limits::{Limits, CLASSES};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Numbers of CPUs that are tried, from the fewest on.
const CPUS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Changes of nice values and affinities in a ms; a seed has ten at most, on average.
const MOST_CHANGES: u64 = 20;

/// What shrinking has come to.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The arguments of this program that show the finding.
    pub arguments: Vec<String>,
    /// The runs that were tried.
    pub tries: u64,
}

/// A run with the finding.
#[derive(Debug, Clone)]
struct Found {
    limits: Limits,
    /// Its length, up to the finding, ms.
    ms: u64,
    /// Tasks that were there at some time.
    tasks: u64,
}

struct Shrinker<'a> {
    seed: u64,
    faults: &'a [String],
    kind: String,
    best: Found,
    tries: u64,
    until: Instant,
}

/// Makes the first finding of a seed's run of `ms` small, for at most `time`. `faults` are options
/// of this program. `None`: the seed has no finding.
///
/// # Errors
///
/// This program cannot be run again.
pub fn shrink(
    seed: u64,
    ms: u64,
    limits: Limits,
    faults: &[String],
    time: Duration,
) -> Result<Option<Shrunk>> {
    let output = run(seed, ms, &limits, faults)?;
    let Some((kind, at, tasks)) = first_finding(&output) else {
        return Ok(None);
    };
    let ms = at.map_or(ms, |at| at.min(ms));
    let mut shrinker = Shrinker {
        seed,
        faults,
        kind,
        best: Found { limits, ms, tasks },
        tries: 1,
        until: Instant::now() + time,
    };
    loop {
        let before = shrinker.best.limits.clone();
        shrinker.round()?;
        if before == shrinker.best.limits || shrinker.is_over() {
            break;
        }
    }
    let best = &shrinker.best;
    Ok(Some(Shrunk {
        arguments: arguments(seed, best.ms, &best.limits, faults),
        tries: shrinker.tries,
    }))
}

impl Shrinker<'_> {
    fn is_over(&self) -> bool {
        Instant::now() > self.until
    }

    fn round(&mut self) -> Result<()> {
        for class in CLASSES {
            let mut limits = self.best.limits.clone();
            if limits.without.insert(class.to_string()) {
                self.still(limits)?;
            }
        }
        for cpus in CPUS {
            let is_fewer = self.best.limits.cpus.is_none_or(|now| cpus < now);
            let limits = Limits {
                cpus: Some(cpus),
                ..self.best.limits.clone()
            };
            if is_fewer && self.still(limits)? {
                break;
            }
        }
        // No set of tasks has more than there are tasks, and there are at most
        // MOST_CHANGES changes in a ms.
        let tasks = self.best.tasks;
        self.drop_some(tasks, |limits| &mut limits.functions)?;
        self.drop_some(tasks, |limits| &mut limits.residents)?;
        if self.best.limits.without.contains("changes") {
            self.best.limits.changes = None;
            return Ok(());
        }
        let changes = MOST_CHANGES * self.best.ms;
        self.drop_some(changes, |limits| &mut limits.changes)
    }

    /// Leaves out numbers of a set, in smaller and smaller parts (Zeller's ddmin).
    fn drop_some(
        &mut self,
        most: u64,
        of: impl Fn(&mut Limits) -> &mut Option<BTreeSet<u64>>,
    ) -> Result<()> {
        let mut limits = self.best.limits.clone();
        let all = of(&mut limits).take();
        let all = all.unwrap_or_else(|| (0..most).collect());
        let mut part = all.len().max(1);
        while part > 0 && !self.is_over() {
            let mut limits = self.best.limits.clone();
            let left = of(&mut limits).clone().unwrap_or_else(|| all.clone());
            let left: Vec<u64> = left.into_iter().collect();
            // The last ones first: they often come after the finding.
            for one in left.rchunks(part) {
                let mut limits = self.best.limits.clone();
                let mut kept = of(&mut limits).take().unwrap_or_else(|| all.clone());
                kept.retain(|number| !one.contains(number));
                *of(&mut limits) = Some(kept);
                self.still(limits)?;
            }
            part /= 2;
        }
        Ok(())
    }

    /// Tries these limits, and keeps them if the finding is still of the same kind.
    fn still(&mut self, limits: Limits) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        self.tries += 1;
        // The finding may come later.
        let output = run(self.seed, 2 * self.best.ms, &limits, self.faults)?;
        let Some((kind, at, tasks)) = first_finding(&output) else {
            return Ok(false);
        };
        if kind != self.kind {
            return Ok(false);
        }
        let ms = at.unwrap_or(self.best.ms);
        self.best = Found { limits, ms, tasks };
        Ok(true)
    }
}

fn arguments(seed: u64, ms: u64, limits: &Limits, faults: &[String]) -> Vec<String> {
    let mut words = vec!["run".to_string(), seed.to_string()];
    words.extend(["--ms".to_string(), ms.to_string()]);
    let limits = limits.to_string();
    if !limits.is_empty() {
        words.extend(["--only".to_string(), limits]);
    }
    words.extend(faults.iter().cloned());
    words
}

fn run(seed: u64, ms: u64, limits: &Limits, faults: &[String]) -> Result<Output> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(arguments(seed, ms.max(1), limits, faults));
    command.stdin(Stdio::null());
    command.output().context("cannot run this program again")
}

/// The kind of the first finding of a run, the ms up to it, and the number of tasks. A crash is a
/// finding without a time.
fn first_finding(output: &Output) -> Option<(String, Option<u64>, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let tasks = number_before(&text, "tasks in").unwrap_or(1_000);
    if !matches!(output.status.code(), Some(0 | 1)) {
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = errors.lines().nth(1).unwrap_or_default();
        return Some((format!("{} {}", output.status, kind(why)), None, tasks));
    }
    let found = text.lines().find_map(|line| {
        let (at, what) = line.split_once(" ms: ")?;
        Some((at.parse::<f64>().ok()?, what))
    });
    let (at, what) = found?;
    Some((kind(what), Some(at.ceil() as u64 + 1), tasks))
}

fn number_before(text: &str, what: &str) -> Option<u64> {
    let before = text.rsplit_once(what)?.0;
    before.split_whitespace().next_back()?.parse().ok()
}

/// A finding without its numbers and without what stands in brackets.
pub(crate) fn kind(finding: &str) -> String {
    let (mut kind, mut depth) = (String::new(), 0_u32);
    for c in finding.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '0'..='9' if kind.ends_with('#') => {}
            '0'..='9' if depth == 0 => kind.push('#'),
            _ if depth == 0 => kind.push(c),
            _ => {}
        }
    }
    kind
}

/// Prints a run that shrinking has come to, with its timeline. Returns false if that fails.
///
/// # Errors
///
/// This program cannot be run again.
pub fn show(shrunk: &Shrunk) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let line = shrunk.arguments.join(" ");
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "after {} runs: sfs_model {line} --timeline\n",
        shrunk.tries
    );
    let mut command = Command::new(program);
    command.args(&shrunk.arguments).arg("--timeline");
    command.status().context("cannot run this program again")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_finding_without_its_numbers() {
        let one = "CPU 3 has idled for 5074 us while task 2 (Function { turns: 2 }) waits in Local";
        let other = "CPU 14 has idled for 9 us while task 205 (Hog) waits in Local";
        assert_eq!(kind(one), kind(other));
        assert_eq!(kind("task 12 is in no queue"), "task # is in no queue");
        assert_ne!(kind("task 12 is in no queue"), kind(one));
    }

    #[test]
    fn numbers_stand_before_words() {
        assert_eq!(
            number_before("1 callbacks, 172 tasks in 500 ms", "tasks in"),
            Some(172)
        );
        assert_eq!(number_before("nothing", "tasks in"), None);
    }
}
