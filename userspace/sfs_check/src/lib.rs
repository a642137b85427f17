//! What a machine lacks for scx_sfs, and how to get it: `scx_sfs check`.
//!
//! All checks read files below a root folder, so that tests can give them any machine. None
//! changes anything or loads a program.
//!
//! | module | purpose |
//! |---|---|
//! | `kernel` | kernel, type information, JIT compiler, CPUs, clock |
//! | `scheduler` | schedulers that are loaded |
//! | `cgroups` | cgroups: sandboxes, quotas, limits |
//! | `platforms` | the platforms of this machine, and what each needs |
#![forbid(unsafe_code)]

mod cgroups;
mod kernel;
mod platforms;
mod scheduler;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sfs_cgroups::SandboxPattern;

pub use platforms::{Platform, PLATFORMS};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// scx_sfs runs, but something is worse than it could be.
    Warn,
    /// scx_sfs does not run.
    Fail,
}

impl Outcome {
    /// Returns its word: ok, warn or fail.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in one or two words.
    pub check: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What is there.
    pub found: String,
    /// What to do; None if nothing has to be done.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding without a remedy.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            outcome: Outcome::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    /// A warning with its remedy.
    pub fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Warn,
            remedy: Some(remedy.into()),
            ..Self::ok(check, found)
        }
    }

    /// A failure with its remedy.
    pub fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Fail,
            ..Self::warn(check, found, remedy)
        }
    }
}

/// What of the configuration matters for the checks.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The patterns of `--cgroup`: as text, and parsed.
    pub cgroups: Vec<(String, SandboxPattern)>,
    /// `--ignore-quotas`.
    pub ignore_quotas: bool,
    /// `--partial`.
    pub partial: bool,
}

/// A machine, as its files.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine whose root folder is `root`; `/` is this one.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the path of an absolute path on that machine.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Returns the content of a file without blanks around it, or None if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// Returns the root of the hierarchy of cgroups.
    pub(crate) fn cgroup_root(&self) -> PathBuf {
        self.path(sfs_cgroups::CGROUP_ROOT)
    }
}

/// Makes all checks for a start with a configuration of which `wanted` is known. `None`: it is
/// wrong, and checks that depend on it assume the defaults.
pub fn examine(machine: &Machine, wanted: Option<&Wanted>) -> Vec<Finding> {
    let defaults = Wanted::default();
    let wanted = wanted.unwrap_or(&defaults);
    let mut findings = kernel::examine(machine, wanted);
    findings.extend(scheduler::examine(machine));
    findings.extend(cgroups::examine(machine, wanted));
    findings.extend(platforms::examine(machine, wanted));
    findings
}

/// Returns whether a process with this `/proc/PID/status` may load a scheduler, as a finding.
pub fn privileges(status: &str) -> Finding {
    const CHECK: &str = "privileges";
    const ADMIN: u64 = 1 << 21; // CAP_SYS_ADMIN
    const BOTH: u64 = 1 << 38 | 1 << 39; // CAP_PERFMON and CAP_BPF
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    match mask {
        Some(mask) if mask & ADMIN != 0 => Finding::ok(CHECK, "may load a scheduler"),
        Some(mask) if mask & BOTH == BOTH => {
            Finding::ok(CHECK, "may load a scheduler (CAP_BPF and CAP_PERFMON)")
        }
        _ => Finding::fail(
            CHECK,
            "this user may not load a scheduler, and some checks may not see everything",
            "run it as root, or with CAP_BPF and CAP_PERFMON, as the service does",
        ),
    }
}

/// Returns the worst outcome.
pub fn worst(findings: &[Finding]) -> Outcome {
    let outcomes = findings.iter().map(|finding| finding.outcome);
    outcomes.max().unwrap_or(Outcome::Ok)
}

/// Returns the first two numbers of a kernel's release.
pub(crate) fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns whether a folder of the machine has any entry.
pub(crate) fn has_entries(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests;
