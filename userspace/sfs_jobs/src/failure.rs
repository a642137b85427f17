//! Errors that end a run early, and their exit statuses.

use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use thiserror::Error;

/// Exit status: an error of the system, such as a full disk.
pub const BROKEN: u8 = 1;
/// Exit status: bad usage.
pub const USAGE: u8 = 2;
/// Exit status: a guest or one of its parts is missing or has failed; as of `vm/run`.
pub const VM: u8 = 125;

/// An error that has an exit status of its own. Other errors have [`BROKEN`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// The request cannot be met; one sentence says why.
    #[error("{0}")]
    Usage(String),
    /// A guest or one of its parts is missing or has failed: one sentence.
    #[error("{0}")]
    Vm(String),
    /// A called program has printed its error, and ended with this status.
    #[error("{0} ended with exit status {1}")]
    Program(String, u8),
    /// A signal asked the program to end; the exit status for that signal.
    #[error("interrupted")]
    Interrupted(u8),
}

impl Failure {
    /// The failure of a program that has printed its error, and ended with `status`. A status that is
    /// not from 1 to 255 becomes 1.
    pub fn of_program(name: &str, status: i32) -> Self {
        let status = u8::try_from(status).ok().filter(|status| *status != 0);
        Self::Program(name.to_owned(), status.unwrap_or(BROKEN))
    }

    /// The exit status of the program.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Vm(_) => VM,
            Self::Program(_, status) | Self::Interrupted(status) => *status,
        }
    }
}

/// The exit status for an error.
///
/// # Example
///
/// ```
/// use sfs_jobs::failure::{status, Failure};
///
/// assert_eq!(status(&Failure::Interrupted(130).into()), 130);
/// assert_eq!(status(&anyhow::anyhow!("the disk is full")), 1);
/// ```
pub fn status(error: &anyhow::Error) -> u8 {
    error
        .downcast_ref::<Failure>()
        .map_or(BROKEN, Failure::status)
}

/// Ends the program `name`: prints the error on standard error, unless a signal
/// has ended it.
pub fn conclude(name: &str, result: Result<u8>) -> ExitCode {
    let status = result.unwrap_or_else(|error| {
        // The user who interrupted it knows.
        if !matches!(error.downcast_ref(), Some(Failure::Interrupted(_))) {
            let _ = writeln!(std::io::stderr(), "{name}: {error:#}");
        }
        status(&error)
    });
    ExitCode::from(status)
}

/// Returns an error of bad usage from the calling function.
#[macro_export]
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::failure::Failure::Usage(format!($($text)*)).into())
    };
}
pub use refuse;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_failed_never_means_success() {
        for (status, ours) in [(2, 2), (255, 255), (0, 1), (256, 1), (-1, 1)] {
            assert_eq!(Failure::of_program("x", status).status(), ours);
        }
    }
}
