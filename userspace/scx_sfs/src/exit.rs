//! How the scheduler has ended, and the exit status that says so.

use std::fmt;

use scx_utils::ScxExitKind;
use serde::{Deserialize, Serialize};

/// The exit statuses of the loader. The unit file (packaging/scx_sfs.service.in) and
/// docs/runbook.md have the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was asked to stop, by SIGINT or SIGTERM.
    Stopped = 0,
    /// It could not be loaded, or not be served any more. (2 is clap's: wrong options.)
    Failed = 1,
    /// The kernel's watchdog has ejected it: a task has not run for 30 s.
    Stalled = 3,
    /// The kernel has ejected it for another error.
    Ejected = 4,
    /// Somebody has ended it by SysRq-S.
    SysRq = 5,
    /// Somebody else has unloaded it.
    Unloaded = 6,
    /// The kernel has ejected it too often within an hour.
    GivenUp = 7,
    /// Another scheduler is loaded.
    Occupied = 8,
}

/// What --help says about them.
pub const HELP: &str = "\
Exit status: 0 stopped as asked; 1 cannot load or serve, a sentence says why; 2 wrong options; \
3 ejected by the kernel's watchdog, as a task has not run for 30 s; 4 ejected for another error; \
5 ended by SysRq-S; 6 unloaded by somebody else; 7 ejected three times within an hour; 8 another \
sched_ext scheduler is loaded.";

/// How a scheduler has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The loader was asked to stop.
    Stopped,
    /// The loader could not serve it any more.
    Failed,
    /// The kernel wants it loaded again: a CPU has come or gone.
    Hotplug,
    /// The kernel's watchdog has ejected it.
    Stalled,
    /// The kernel has ejected it for another error.
    Error,
    /// SysRq-S.
    SysRq,
    /// Somebody else has unloaded it.
    Unloaded,
    /// The loader has been killed: nobody knows when, and it could not say anything.
    Killed,
}

impl End {
    /// Returns what the kernel's exit `kind` means. `by_us`: the loader has unloaded it;
    /// `restart`: the kernel asks for a restart. What is not known is an error if the
    /// kernel counts it among these.
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

    /// Returns whether the kernel has ended it for a fault.
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

/// An error, and the exit status for it.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: Status,
    /// What to say; nothing where all has been said.
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
        // The numbers of enum scx_exit_kind, kernel/sched/ext_internal.h.
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
    fn the_help_has_all_of_them() {
        for status in [
            Status::Stopped,
            Status::Failed,
            Status::Stalled,
            Status::Ejected,
            Status::SysRq,
            Status::Unloaded,
            Status::GivenUp,
            Status::Occupied,
        ] {
            let number = format!("{} ", status as u8);
            let mut words = HELP.split(": ").flat_map(|part| part.split("; "));
            assert!(words.any(|word| word.starts_with(&number)), "{status:?}");
        }
    }
}
