//! `tests/run`: the cases in several guests.

use crate::blocks::Allowed;
use crate::cases::{self, Cases};
use crate::count::Count;
use crate::guest::{self, Ended, Guests, Task};
use crate::long::{self, Part};
use crate::perturb::{self, Perturbations};
use crate::pool;
use anyhow::{Context, Result};
use clap::Args;
use sfs_jobs::failure::{Failure, USAGE};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Exit status: a case failed.
pub const FAILED: u8 = 1;

/// Fewer cases than this are not worth another guest.
const CASES_PER_GUEST: usize = 6;
/// Guests one after another for each of those at the same time, so that the last ones end
/// together.
const GUESTS_PER_JOB: usize = 2;
/// More guests than this at the same time only if somebody asks for them.
const MOST_JOBS: usize = 4;
/// If more cases than this have failed, none is played again: the cause is not chance.
const MOST_AGAIN: usize = 3;
/// The other machines on which a failed case has to pass, and those for a case that
/// `tests/unsteady` lists.
const MACHINES: usize = 3;
const MACHINES_OF_UNSTEADY: usize = 2;
/// How many lines of its console are printed of a guest that ended too early.
const CONSOLE_LINES: usize = 40;

/// The options.
#[derive(Debug, Clone, Args)]
#[command(
    args_override_self = true,
    override_usage = "tests/run [OPTIONS] [CASE]...",
    after_help = "Exit status: 0; 1 a case failed; 2 bad usage; 130 interrupted; another one of vm/run if a guest ended before its cases had."
)]
pub struct RunArgs {
    /// Cases to run instead of all; a trailing * stands for anything
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Emulated CPUs (default: 4)
    #[arg(long, value_name = "N")]
    cpus: Option<String>,
    /// Sockets, cores and threads instead, as 2x4x2; see vm/README.md
    #[arg(long, value_name = "SxCxT")]
    topology: Option<String>,
    /// A version that vm/fetch-kernel knows, or the path of an image
    #[arg(long, value_name = "K")]
    kernel: Option<String>,
    /// icount (the default), tcg, kvm or auto; see vm/README.md
    #[arg(long, value_name = "A")]
    accel: Option<String>,
    /// Real seconds until a guest that hangs is given up (default: 3000)
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<u32>,
    /// More options of scx_sfs for all cases, as '--filter-shards 2'
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    with: Option<String>,
    /// Guests at the same time; each runs two shares of the cases, of at least 6 cases
    /// (default: one for each CPU of the host, at most 4)
    #[arg(long, value_name = "J", value_parser = jobs)]
    jobs: Option<u16>,
    /// N times, each on a machine that differs a little (vm/run --perturb), 6 cases to a
    /// guest; at the end the cases that failed, how often, and the commands that repeat them
    #[arg(long, value_name = "N", value_parser = perturbation)]
    perturb: Option<u16>,
    /// Begins with perturbation K (default: 1)
    #[arg(long, value_name = "K", value_parser = perturbation)]
    from: Option<u16>,
    /// Keeps the output of --perturb in DIR, and resumes what is there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Perturbation K alone
    #[arg(long, value_name = "K", value_parser = perturbation, conflicts_with_all = ["perturb", "from"])]
    perturbation: Option<u16>,
    /// Of the cases that tests/long lists, part K of N only
    #[arg(long, value_name = "K/N", conflicts_with_all = ["cases", "perturb", "perturbation"])]
    long: Option<Part>,
    /// Prints the cases
    #[arg(long)]
    list: bool,
}

fn jobs(text: &str) -> Result<u16, String> {
    number(text, 99).ok_or_else(|| format!("takes a number of guests, not '{text}'"))
}

fn seconds(text: &str) -> Result<u32, String> {
    let most = 1_000_000;
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (1..=most).contains(seconds));
    seconds.ok_or_else(|| format!("takes a number from 1 to {most}, not '{text}'"))
}

fn perturbation(text: &str) -> Result<u16, String> {
    number(text, 9999).ok_or_else(|| format!("takes a number from 1 to 9999, not '{text}'"))
}

/// A number from 1 to `most`, without a sign or zeros before it.
fn number(text: &str, most: u16) -> Option<u16> {
    let number = text.parse().ok()?;
    ((1..=most).contains(&number) && text.starts_with(|first: char| ('1'..='9').contains(&first)))
        .then_some(number)
}

impl RunArgs {
    /// The machine and the options of scx_sfs, as words of tests/run.
    pub fn words(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("--cpus", &self.cpus),
            ("--topology", &self.topology),
            ("--kernel", &self.kernel),
            ("--accel", &self.accel),
            ("--with", &self.with),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)));
        given.collect()
    }

    /// The same as options of vm/run.
    fn options(&self) -> Vec<OsString> {
        let words = self
            .words()
            .into_iter()
            .flat_map(|(name, value)| match name {
                "--with" => ["--env".to_string(), format!("SFS_BEHAVIOUR_WITH={value}")],
                _ => [name.to_string(), value.to_string()],
            });
        let timeout = self
            .timeout
            .iter()
            .flat_map(|seconds| ["--timeout".to_string(), seconds.to_string()]);
        words.chain(timeout).map(OsString::from).collect()
    }

    fn jobs(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(|| cpus().min(MOST_JOBS), usize::from)
    }

    /// The perturbations that are asked for.
    fn perturbations(&self) -> Option<std::ops::RangeInclusive<u16>> {
        if let Some(alone) = self.perturbation {
            return Some(alone..=alone);
        }
        let first = self.from.unwrap_or(1);
        self.perturb.map(|count| first..=first + count - 1)
    }
}

/// Runs what the options say; returns the exit status.
///
/// # Errors
/// If a program cannot be run or a file cannot be written, if there is no such case, and
/// [`sfs_jobs::failure::Failure::Interrupted`].
pub fn run(tree: &Tree, args: &RunArgs, interrupt: &Interrupt) -> Result<u8> {
    if args.list {
        let listed = cases::list(tree, &[], &args.cases)?;
        let _ = std::io::stdout().write_all(listed.as_bytes());
        return Ok(0);
    }
    let work = tempfile::tempdir().context("cannot make a temporary folder")?;
    let patterns = patterns(tree, args)?;
    let cases = Cases::find(tree, &patterns)?;
    let guests = Guests {
        tree,
        interrupt,
        options: args.options(),
        allowed: Allowed::parse(&read(tree, "tests/waste")?),
        work: work.path().to_path_buf(),
    };
    if let Some(range) = args.perturbations() {
        let perturbations = Perturbations {
            guests: &guests,
            words: args.words(),
            patterns: &patterns,
            jobs: args.jobs(),
        };
        return perturb::run(&perturbations, &cases, range, args.out.as_deref());
    }
    let suite = Suite {
        guests: &guests,
        patterns: &patterns,
        jobs: args.jobs(),
        unsteady: read(tree, "tests/unsteady")?,
    };
    suite.run(&cases)
}

/// The patterns for the cases that somebody wants. Says how many --long leaves out.
fn patterns(tree: &Tree, args: &RunArgs) -> Result<Vec<String>> {
    let Some(part) = args.long else {
        return Ok(args.cases.clone());
    };
    let all = cases::names(&cases::list(tree, &[], &[])?);
    let (chosen, left_out) = part.choose(all, &read(tree, long::LIST)?)?;
    let line = format!("# {left_out} cases of {} are in other parts", long::LIST);
    guest::print(&[line], "");
    Ok(chosen)
}

/// A file of the repository; empty if there is none.
fn read(tree: &Tree, path: &str) -> Result<String> {
    match std::fs::read_to_string(tree.at(path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        result => result.with_context(|| format!("cannot read {path}")),
    }
}

/// All cases on the usual machine.
struct Suite<'a> {
    guests: &'a Guests<'a>,
    /// The user's patterns for the cases.
    patterns: &'a [String],
    jobs: usize,
    /// The cases that vary, one a line: `NAME: why`.
    unsteady: String,
}

impl Suite<'_> {
    fn run(&self, cases: &Cases) -> Result<u8> {
        let ended = pool::for_each(self.jobs, self.tasks(cases), |task| {
            let ended = self.guests.run(&task)?;
            if ended.status == i32::from(USAGE) {
                // vm/run has said which option it does not take. No other guest would start.
                return Err(Failure::Program("vm/run".to_string(), USAGE).into());
            }
            if !ended.is_whole() {
                self.say_unfinished(&task.name, ended.status);
            }
            Ok(ended)
        })?;
        let mut total = Count::default();
        for count in ended.iter().filter_map(|ended| ended.count) {
            total += count;
        }
        let mut status = ended.iter().map(|ended| ended.status).max().unwrap_or(0);
        if status != 0 {
            let failed: Vec<&String> = ended.iter().flat_map(|ended| &ended.failed).collect();
            let forgiven = self.look_again(&failed)?;
            (0..forgiven).for_each(|_| total.forgive());
            if forgiven == failed.len() && ended.iter().all(Ended::is_whole) {
                status = 0;
            }
        }
        guest::print(&[total.to_string()], "");
        Ok(u8::try_from(status).unwrap_or(FAILED))
    }

    /// The guests: shares of the cases that need no machine of their own, then the others.
    fn tasks(&self, cases: &Cases) -> Vec<Task> {
        let words = |option: &str, value: String| {
            let mut words = vec![option.to_string(), value];
            words.extend_from_slice(self.patterns);
            words
        };
        let parts = shares(cases.plain.len(), self.jobs);
        let plain = (1..=parts).map(|part| Task {
            name: format!("part-{part}"),
            words: words("--part", format!("{part}/{parts}")),
            ..Task::default()
        });
        let apart = cases.apart.iter().map(|(kind, _)| Task {
            name: kind.name().to_string(),
            machine: kind.machine(),
            words: words("--apart", kind.name().to_string()),
            ..Task::default()
        });
        plain.chain(apart).collect()
    }

    /// Plays failed cases once more on machines that differ a little. Returns how many passed
    /// on all of them: those count as passed, which is said. With 170 cases, each with one
    /// course of events in a hundred that fails it, no suite would pass otherwise, and the
    /// failure would not be the last change's.
    fn look_again(&self, failed: &[&String]) -> Result<usize> {
        if failed.len() > MOST_AGAIN {
            return Ok(0);
        }
        let mut forgiven = 0;
        for name in failed {
            let machines = match self.is_unsteady(name) {
                true => MACHINES_OF_UNSTEADY,
                false => MACHINES,
            };
            if self.passes_elsewhere(name, machines)? {
                let of = machines + 1;
                let line = format!("# {name}: failed on one machine of {of}; counted as passed");
                guest::print(&[line], "");
                forgiven += 1;
            }
        }
        Ok(forgiven)
    }

    fn is_unsteady(&self, name: &str) -> bool {
        let mut names = self
            .unsteady
            .lines()
            .filter_map(|line| line.split_once(':'));
        names.any(|(unsteady, _)| unsteady == name)
    }

    /// Whether the case passes on so many other machines, and is not skipped there, as one
    /// that needs a machine of its own is.
    fn passes_elsewhere(&self, name: &str, machines: usize) -> Result<bool> {
        for perturbation in 1..=machines {
            let line = format!("# {name} has failed: again, with --perturb {perturbation}");
            guest::print(&[line], "");
            let number = perturbation.to_string();
            let ended = self.guests.run(&Task {
                name: format!("again-{name}-{perturbation}"),
                machine: ["--quiet", "--perturb", &number]
                    .map(OsString::from)
                    .to_vec(),
                words: vec![name.to_string()],
                indent: "#   ",
            })?;
            let passed = ended
                .count
                .is_some_and(|count| (count.passed, count.failed) == (1, 0));
            if ended.status != 0 || !passed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says that a guest did not come to the end of its cases.
    fn say_unfinished(&self, name: &str, status: i32) {
        let console = std::fs::read(self.guests.console(name)).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).replace('\r', "");
        let lines: Vec<&str> = console.lines().collect();
        let end = lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n");
        let _ = writeln!(
            std::io::stderr(),
            "run: the guest \"{name}\" ended with exit status {status} before its cases had; the end of its console:\n{end}"
        );
    }
}

/// How many guests share `cases` cases, with `jobs` guests at the same time.
fn shares(cases: usize, jobs: usize) -> usize {
    let most = (cases / CASES_PER_GUEST).max(1);
    (jobs * GUESTS_PER_JOB).min(most).min(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_have_six_cases_at_least() {
        for (cases, jobs, want) in [
            (0, 2, 0),
            (1, 2, 1),
            (11, 2, 1),
            (12, 2, 2),
            (170, 2, 4),
            (170, 4, 8),
            (17, 4, 2),
        ] {
            assert_eq!(shares(cases, jobs), want, "{cases} cases, {jobs} jobs");
        }
    }

    #[test]
    fn numbers_have_no_sign_and_no_zeros_before_them() {
        assert_eq!(number("1", 99), Some(1));
        assert_eq!(number("99", 99), Some(99));
        for text in ["0", "100", "+1", "01", "-1", "", "many"] {
            assert_eq!(number(text, 99), None, "{text}");
        }
    }
}
