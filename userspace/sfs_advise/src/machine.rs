//! The machine: its present scheduler, and its CPUs.

use std::fs;

use anyhow::{Context, Result};
use nix::sys::utsname::uname;
use nix::unistd::{sysconf, SysconfVar};
use serde::Serialize;
use sfs_text::{line, NAME_CHARS};

const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Linux has EEVDF from this version on.
const WITH_EEVDF: (u32, u32) = (6, 6);

/// A scheduler of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// EEVDF, the kernel's own.
    Eevdf,
    /// CFS, that of older kernels.
    Cfs,
    /// A sched_ext scheduler, by its name in the kernel.
    SchedExt(String),
}

impl Scheduler {
    /// Returns what schedules this machine now.
    pub fn now() -> Self {
        let read = |file| fs::read_to_string(format!("{SCHED_EXT}/{file}")).unwrap_or_default();
        let release = uname().map(|name| name.release().to_string_lossy().into_owned());
        Self::of(
            &read("state"),
            &read("root/ops"),
            &release.unwrap_or_default(),
        )
    }

    /// The scheduler by the state and the name of sched_ext's, and the kernel's release.
    fn of(state: &str, ops: &str, release: &str) -> Self {
        if state.trim() == "enabled" {
            return Self::SchedExt(line(ops.trim(), NAME_CHARS));
        }
        let mut numbers = release.split(['.', '-']).map(|part| part.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) < WITH_EEVDF => Self::Cfs,
            _ => Self::Eevdf,
        }
    }

    /// Returns its name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Eevdf => "EEVDF",
            Self::Cfs => "CFS",
            Self::SchedExt(name) => name,
        }
    }

    /// Returns whether it is the kernel's own.
    pub fn is_own(&self) -> bool {
        !matches!(self, Self::SchedExt(_))
    }
}

/// Returns the number of CPUs that are online.
///
/// # Errors
/// If the kernel does not tell.
pub fn cpus() -> Result<u32> {
    let count = sysconf(SysconfVar::_NPROCESSORS_ONLN).context("cannot count the CPUs")?;
    let count = count.and_then(|count| u32::try_from(count).ok());
    count
        .filter(|count| *count > 0)
        .context("the kernel does not tell the number of its CPUs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_follows_from_sched_ext_and_the_release() {
        let of = Scheduler::of;
        assert_eq!(of("disabled\n", "", "6.18.15-amd64"), Scheduler::Eevdf);
        assert_eq!(of("", "", "6.1.0-18-amd64"), Scheduler::Cfs);
        assert_eq!(of("", "", "6.6-rc1"), Scheduler::Eevdf);
        assert_eq!(of("", "", "nothing"), Scheduler::Eevdf);
        let other = of("enabled\n", "bpfland_1.0\n", "6.18");
        assert_eq!(other, Scheduler::SchedExt("bpfland_1.0".into()));
        assert!(!other.is_own() && of("", "", "5.4.0").is_own());
    }
}
