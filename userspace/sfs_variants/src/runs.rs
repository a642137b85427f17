//! Runs of the model: a seed for some time, with a variant of the kernel half.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// A mutant may use so much memory, KiB.
const MEMORY_KIB: u64 = 4 << 20;
/// SIGKILL, SIGXCPU: the limit of CPU time is reached.
const LIMIT_SIGNALS: [i32; 2] = [9, 24];
/// Longer than the longest permitted wait (11 s), ms.
pub const LONG_MS: u64 = 13_000;
/// The exit status of a run with findings.
const FINDINGS: i32 = 1;

/// A run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The machine's time, ms.
    pub ms: u64,
    /// Callbacks do not interleave, though the seed has drawn that: then the rules are checked at
    /// each callback.
    pub plain: bool,
}

impl Run {
    /// A seed as it is, for so many ms.
    #[must_use]
    pub fn new(seed: u64, ms: u64) -> Self {
        Self {
            seed,
            ms,
            plain: false,
        }
    }

    /// The same without callbacks that interleave.
    #[must_use]
    pub fn plain(self) -> Self {
        Self {
            plain: true,
            ..self
        }
    }

    /// The arguments of `sfs_model`.
    fn arguments(self) -> Vec<String> {
        let mut words = vec!["run".to_owned(), self.seed.to_string()];
        words.extend(["--ms".to_owned(), self.ms.to_string()]);
        if self.plain {
            words.extend(["--only".to_owned(), "without=races".to_owned()]);
        }
        words
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "sfs_model {}", self.arguments().join(" "))
    }
}

/// Seeds 1 to `seeds`, 500 ms each.
#[must_use]
pub fn seeds(seeds: u64) -> Vec<Run> {
    (1..=seeds).map(|seed| Run::new(seed, 500)).collect()
}

/// The same, and each fiftieth seed again for long enough that the guard has to act (5 s).
#[must_use]
pub fn seeds_and_long(seeds: u64) -> Vec<Run> {
    let long = (1..=seeds).step_by(50).map(|seed| Run::new(seed, LONG_MS));
    self::seeds(seeds).into_iter().chain(long).collect()
}

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// No invariant was violated.
    Clean,
    /// The first violated invariant.
    Finding(String),
    /// It crashed: a signal, or a panic of the model.
    Crash(String),
    /// It took too long.
    TimeOut,
}

/// A finished run.
#[derive(Debug, Clone)]
pub struct Done {
    /// How it has ended.
    pub ending: Ending,
    /// All violated invariants: ms since load, and what.
    pub findings: Vec<(f64, String)>,
    /// Callbacks have interleaved.
    pub has_races: bool,
    /// The digest of all events; empty if it crashed.
    pub digest: String,
    /// The number of events.
    pub events: u64,
    /// What it has written to its standard error.
    pub errors: String,
}

/// What a run has for itself.
#[derive(Debug, Default)]
pub struct Setting {
    /// CPU time in s; `None`: no limit, nor one of memory.
    pub cpu_s: Option<u64>,
    /// More arguments.
    pub arguments: Vec<&'static str>,
    /// More variables of the environment.
    pub variables: Vec<(&'static str, OsString)>,
}

/// Runs `program` with the library in the folder `library`.
///
/// # Errors
/// If the program cannot be started.
pub fn run(program: &Path, library: &Path, run: Run, setting: &Setting) -> Result<Done> {
    let mut command = match setting.cpu_s {
        None => Command::new(program),
        Some(seconds) => {
            let limits = format!(
                "ulimit -c 0; ulimit -t {seconds}; ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\""
            );
            let mut shell = Command::new("sh");
            shell.args(["-c", &limits]).arg(program);
            shell
        }
    };
    command.env("LD_LIBRARY_PATH", library);
    command.envs(setting.variables.iter().map(|(name, value)| (name, value)));
    command.args(run.arguments());
    command.args(&setting.arguments);
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().last().unwrap_or_default();
    let ending = match (output.status.code(), output.status.signal()) {
        (Some(0), _) => Ending::Clean,
        (Some(FINDINGS), _) if last.contains(", digest ") => {
            Ending::Finding(text.lines().next().unwrap_or_default().to_owned())
        }
        (_, Some(signal)) if LIMIT_SIGNALS.contains(&signal) => Ending::TimeOut,
        _ => {
            let why = errors.lines().find(|line| !line.is_empty());
            Ending::Crash(format!("{}: {}", output.status, why.unwrap_or_default()))
        }
    };
    Ok(Done {
        ending,
        findings: text.lines().filter_map(finding).collect(),
        has_races: text.lines().any(|line| line.starts_with("races: ")),
        digest: word_behind(last, "digest ").to_owned(),
        events: events(last),
        errors,
    })
}

/// A line with a finding.
fn finding(line: &str) -> Option<(f64, String)> {
    let (at, what) = line.split_once(" ms: ")?;
    Some((at.parse().ok()?, what.to_owned()))
}

fn word_behind<'a>(line: &'a str, mark: &str) -> &'a str {
    let rest = line.split_once(mark).map_or("", |(_, rest)| rest);
    rest.split([',', ' ']).next().unwrap_or_default()
}

fn events(last: &str) -> u64 {
    word_behind(last, ": ").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read() {
        let line = "seed 2: 7530 events, 19123 callbacks, digest 7960e40c3ae39525, 0 findings";
        assert_eq!(word_behind(line, "digest "), "7960e40c3ae39525");
        assert_eq!(events(line), 7530);
        assert_eq!(events(""), 0);
    }

    fn program(text: &str) -> Done {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("it is ours");
        let setting = Setting {
            cpu_s: Some(1),
            ..Setting::default()
        };
        super::run(&path, folder.path(), Run::new(3, 9), &setting).expect("it runs")
    }

    #[test]
    fn endings_are_told_apart() {
        let last = "echo \"seed $2: 5 events, digest 0f, 1 findings\"";
        let clean = program(last);
        assert_eq!((clean.ending, clean.events), (Ending::Clean, 5));
        let finding = program(&format!("echo 'at $4: bad'; {last}; exit 1"));
        assert_eq!(finding.ending, Ending::Finding("at $4: bad".into()));
        let two = program(&format!(
            "echo '1.500 ms: a'; echo '2 ms: b'; {last}; exit 1"
        ));
        assert_eq!(two.findings, [(1.5, "a".into()), (2.0, "b".into())]);
        assert!(matches!(program("kill -SEGV $$").ending, Ending::Crash(_)));
        assert!(matches!(program("exit 101").ending, Ending::Crash(_)));
        assert!(matches!(program("exit 1").ending, Ending::Crash(_)));
        assert_eq!(program("while :; do :; done").ending, Ending::TimeOut);
    }
}
