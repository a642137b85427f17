//! The end of the scheduler, and the exit status for it.

use std::fmt;

use scx_utils::ScxExitKind;
use serde::{Deserialize, Serialize};

/// Exit statuses of the loader. The unit file (packaging/scx_sfs.service.in) and
/// docs/runbook.md contain the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Stopped by SIGINT or SIGTERM.
    Stopped = 0,
    /// It could not be loaded, or not be served any longer. (2 is clap's status for invalid
    /// options.)
    Failed = 1,
    /// The kernel's watchdog ejected it: a task had not run for 30 s.
    Stalled = 3,
    /// The kernel ejected it for another error.
    Ejected = 4,
    /// SysRq-S ended it.
    SysRq = 5,
    /// Another program unloaded it.
    Unloaded = 6,
    /// The kernel ejected it too often within an hour.
    GivenUp = 7,
    /// Another scheduler is loaded.
    Occupied = 8,
    /// A configuration file cannot be read, or has an unknown key or a wrong value.
    Misconfigured = 9,
}

/// The exit statuses of the loader, with their meaning. docs/runbook.md says what to do.
pub const STATUSES: [(u8, &str); 10] = [
    (
        Status::Stopped as u8,
        "stopped by SIGINT or SIGTERM, or done",
    ),
    (
        Status::Failed as u8,
        "cannot load, serve or answer; a sentence says why",
    ),
    (2, "wrong options"),
    (
        Status::Stalled as u8,
        "ejected by the kernel's watchdog: a task has not run for 30 s",
    ),
    (
        Status::Ejected as u8,
        "ejected by the kernel for another error",
    ),
    (Status::SysRq as u8, "ended by SysRq-S"),
    (Status::Unloaded as u8, "unloaded by another program"),
    (Status::GivenUp as u8, "ejected three times within an hour"),
    (
        Status::Occupied as u8,
        "another sched_ext scheduler is loaded",
    ),
    (Status::Misconfigured as u8, "a configuration file is wrong"),
];

/// Returns the table of the statuses for --help.
pub fn help() -> String {
    let rows = STATUSES.iter();
    let rows = rows.map(|(status, meaning)| format!("  {status}  {meaning}"));
    format!("Exit status:\n{}", rows.collect::<Vec<_>>().join("\n"))
}

/// How a scheduler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The loader was asked to stop.
    Stopped,
    /// The loader could not serve it any longer.
    Failed,
    /// The kernel requests a restart after CPU hotplug.
    Hotplug,
    /// The kernel's watchdog ejected it.
    Stalled,
    /// The kernel ejected it for another error.
    Error,
    /// SysRq-S.
    SysRq,
    /// Another program unloaded it.
    Unloaded,
    /// The loader was killed, at an unknown time and without a chance to record it.
    Killed,
}

impl End {
    /// Maps the kernel's exit `kind`. `by_us`: the loader unloaded it; `restart`: the kernel
    /// requests a restart. Unknown kinds are errors if they are in the kernel's range of
    /// errors.
    pub fn of(kind: i32, restart: bool, by_us: bool) -> Self {
        const ERROR: i32 = ScxExitKind::Error as i32;
        const STALL: i32 = ScxExitKind::ErrorStall as i32;
        const SYSRQ: i32 = ScxExitKind::SysRq as i32;
        match kind {
            _ if restart => Self::Hotplug,
            STALL => Self::Stalled,
            ERROR.. => Self::Error,
            SYSRQ => Self::SysRq,
            _ if by_us => Self::Stopped,
            _ => Self::Unloaded,
        }
    }

    /// Returns whether the kernel ejected it for an error.
    pub fn is_ejection(self) -> bool {
        matches!(self, Self::Stalled | Self::Error)
    }

    /// Returns the exit status for it.
    pub fn status(self) -> Status {
        match self {
            Self::Stopped | Self::Hotplug => Status::Stopped,
            Self::Failed | Self::Killed => Status::Failed,
            Self::Stalled => Status::Stalled,
            Self::Error => Status::Ejected,
            Self::SysRq => Status::SysRq,
            Self::Unloaded => Status::Unloaded,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Hotplug => "hotplug",
            Self::Stalled => "stalled",
            Self::Error => "error",
            Self::SysRq => "sysrq",
            Self::Unloaded => "unloaded",
            Self::Killed => "killed",
        })
    }
}

/// An error with its exit status.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: Status,
    /// The error message; None if it has already been printed.
    pub error: Option<anyhow::Error>,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self {
            status: Status::Failed,
            error: Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_the_kernel_has_its_status() {
        // Numbers of enum scx_exit_kind, kernel/sched/ext_internal.h.
        for (kind, by_us, status) in [
            (64, true, 0),
            (64, false, 6),
            (65, false, 6),
            (66, false, 6),
            (67, false, 5),
            (67, true, 5),
            (68, false, 6),
            (1024, false, 4),
            (1025, false, 4),
            (1026, false, 3),
            (1026, true, 3),
            (1027, false, 4),
            (9999, false, 4),
        ] {
            let end = End::of(kind, false, by_us);
            assert_eq!(end.status() as u8, status, "kind {kind}, by us: {by_us}");
            assert_eq!(end.is_ejection(), kind >= 1024, "kind {kind}");
        }
        assert_eq!(End::of(66, true, false), End::Hotplug);
    }

    #[test]
    fn the_help_lists_all_statuses() {
        for status in [
            Status::Stopped,
            Status::Failed,
            Status::Stalled,
            Status::Ejected,
            Status::SysRq,
            Status::Unloaded,
            Status::GivenUp,
            Status::Occupied,
            Status::Misconfigured,
        ] {
            let mut rows = STATUSES.iter();
            assert!(
                rows.any(|(number, _)| *number == status as u8),
                "{status:?}"
            );
        }
    }
}
