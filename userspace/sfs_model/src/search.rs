//! A search: one seed after another, each in a process of its own, because the kernel half's
//! variables are those of the process.

use crate::machine::Outcome;
use crate::shrink::kind;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Milliseconds of the machine's time for a seed.
pub const MS: u64 = 500;
/// How often a search says how far it is.
const PROGRESS: Duration = Duration::from_secs(30);
/// Real seconds after which a seed is given up, so that a search ends when it should. Very few need
/// as long: those in which ten thousand tasks wait in one queue that no CPU may take them from.
const LONGEST_S: u64 = 60;
/// What the last line of such a run says.
const GAVE_UP: &str = ", given up";

/// What a search has found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that violated an invariant, or crashed.
    pub failures: u64,
    /// Seeds that violated only invariants of which that is known.
    pub known: u64,
    /// Events of all of them.
    pub events: u64,
    /// Seeds that took too long, and were given up.
    pub given_up: u64,
    /// The lowest seed that failed.
    pub first_failure: Option<u64>,
}

impl Report {
    /// Returns true if a seed failed.
    pub fn failed(&self) -> bool {
        self.failures > 0
    }
}

/// The last line that a run of one seed prints.
pub fn last_line(seed: u64, ms: u64, outcome: &Outcome) -> String {
    format!(
        "seed {seed}: {} events, {} callbacks, {} tasks in {ms} ms, digest {:016x}, {} findings{}",
        outcome.events,
        outcome.callbacks,
        outcome.tasks,
        outcome.digest,
        outcome.findings.len(),
        if outcome.gave_up { GAVE_UP } else { "" }
    )
}

/// Kinds of findings that are known and not mended yet, so that they do not hide new ones.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Known(BTreeSet<String>);

impl Known {
    /// Reads a file with a kind in each line, `KIND: why`: a finding with # for numbers, and without
    /// what stands in brackets. Lines that begin with // are comments.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let lines = text.lines().filter(|line| !line.starts_with("//"));
        let kinds = lines.filter_map(|line| Some(line.split_once(": ")?.0.to_string()));
        Ok(Self(kinds.collect()))
    }

    /// Returns true if each finding of a run is of such a kind. A crash is none.
    fn has_all(&self, text: &str) -> bool {
        let mut findings = text.lines().filter_map(finding).peekable();
        findings.peek().is_some() && findings.all(|finding| self.0.contains(&known_as(finding)))
    }
}

/// The finding in `12.345 ms: FINDING`, which a run prints.
fn finding(line: &str) -> Option<&str> {
    let (at, finding) = line.split_once(" ms: ")?;
    at.parse::<f64>().ok().map(|_| finding)
}

/// The kind of a finding as a file has it: with one blank between words.
fn known_as(finding: &str) -> String {
    let kind = kind(finding);
    kind.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs seeds from `first` on for this long, `jobs` at a time. Prints each failure with the
/// command that repeats it, and at the end the sums. A seed with `known` findings only is counted,
/// and is no failure. With `rules` each callback is compared with the rules of the policy as well.
///
/// # Errors
/// If this program cannot be run again.
pub fn search(
    first: u64,
    duration: Duration,
    jobs: Option<usize>,
    known: &Known,
    rules: bool,
) -> Result<Report> {
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    say(&format!(
        "seeds from {first} on, for {} s",
        duration.as_secs()
    ));
    let (began, next) = (Instant::now(), AtomicU64::new(first));
    let sums = Mutex::new((Report::default(), began));
    let worker = || -> Result<()> {
        while began.elapsed() < duration {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let (text, failure) = run(seed, rules)?;
            let mut sums = sums.lock().expect("no worker panics");
            sums.0.seeds += 1;
            sums.0.events += events(&text);
            sums.0.given_up += u64::from(text.trim_end().ends_with(GAVE_UP));
            let failure = failure.filter(|text| {
                let is_known = known.has_all(text);
                sums.0.known += u64::from(is_known);
                !is_known
            });
            if let Some(text) = failure {
                sums.0.failures += 1;
                let before = sums.0.first_failure.unwrap_or(seed);
                sums.0.first_failure = Some(before.min(seed));
                say(&format!("{text}{}", repeat(seed, rules)));
            }
            if sums.1.elapsed() > PROGRESS {
                sums.1 = Instant::now();
                say(&format!(
                    "{} s: {}",
                    began.elapsed().as_secs(),
                    line(&sums.0)
                ));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        let ends = workers
            .into_iter()
            .map(|worker| worker.join().expect("no worker panics"));
        ends.collect::<Result<Vec<()>>>()
    })?;
    let report = sums.into_inner().expect("no worker panics").0;
    if let Some(seed) = report.first_failure {
        say(&repeat(seed, rules));
    }
    let _ = writeln!(std::io::stdout(), "{}", line(&report));
    Ok(report)
}

/// The commands that repeat a seed.
fn repeat(seed: u64, rules: bool) -> String {
    let program = std::env::args().next();
    let program = program.unwrap_or_else(|| "sfs_model".to_string());
    let unwatched = if rules { "" } else { " --unwatched" };
    format!(
        "repeat with: {program} run {seed} --timeline{unwatched}\n\
         make small with: {program} shrink {seed}{unwatched}"
    )
}

fn line(report: &Report) -> String {
    let Report {
        seeds,
        failures,
        known,
        events,
        given_up,
        ..
    } = report;
    let known = match known {
        0 => String::new(),
        known => format!(", {known} with known ones only"),
    };
    let given_up = match given_up {
        0 => String::new(),
        given_up => format!(", {given_up} given up after {LONGEST_S} s"),
    };
    format!("{seeds} seeds, {events} events, {failures} seeds with findings{known}{given_up}")
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "search: {text}");
}

/// Runs a seed. Returns what it printed, and that with its errors if it failed.
fn run(seed: u64, rules: bool) -> Result<(String, Option<String>)> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command
        .args(["run", &seed.to_string()])
        .args(["--seconds", &LONGEST_S.to_string()])
        .args((!rules).then_some("--unwatched"))
        .stdin(Stdio::null());
    let output = command.output().context("cannot run this program again")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let failure = (!output.status.success()).then(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("seed {seed}, {}:\n{text}{errors}", output.status)
    });
    Ok((text, failure))
}

/// The number of events in the last line of a run.
fn events(text: &str) -> u64 {
    let last = text.lines().last().unwrap_or_default();
    let words: Vec<&str> = last.split(' ').collect();
    let events = words.windows(2).find(|pair| pair[1] == "events,");
    events.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_no_numbers_and_known_ones_hide_no_others() {
        let idle =
            "CPU 1 has idled for 5270 us while task 13 (Hog { a: (2) }) waits in Local of CPU 51";
        assert_eq!(
            known_as(idle),
            "CPU # has idled for # us while task # waits in Local of CPU #"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = format!("// a comment: none\n{}: not looked into\n", known_as(idle));
        std::fs::write(file.path(), line).unwrap();
        let known = Known::read(file.path()).unwrap();
        let run = format!("seed 7, exit status: 1:\n1.5 ms: {idle}\nseed 7: 1 events\n");
        assert!(known.has_all(&run));
        assert!(!known.has_all(&format!("{run}2.5 ms: task 3 is in no queue\n")));
        assert!(!known.has_all("seed 7, signal: 11 (SIGSEGV):\n"));
        assert!(!Known::default().has_all(&run));
        assert!(Known::read(Path::new("/nowhere")).is_err());
    }
}
