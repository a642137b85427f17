//! Errors that end a run early, and their exit statuses.

use thiserror::Error;

/// Exit status: an error of the system, such as a full disk.
pub const BROKEN: u8 = 1;
/// Exit status: bad usage.
pub const USAGE: u8 = 2;

/// An error that has an exit status of its own. Other errors have [`BROKEN`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// The request cannot be met; one sentence says why.
    #[error("{0}")]
    Usage(String),
    /// A called program has printed its error, and ended with this status.
    #[error("{0} ended with exit status {1}")]
    Program(String, u8),
    /// A signal asked the program to end; the exit status for that signal.
    #[error("interrupted")]
    Interrupted(u8),
}

impl Failure {
    /// The exit status of the program.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
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

/// Returns an error of bad usage from the calling function.
#[macro_export]
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::failure::Failure::Usage(format!($($text)*)).into())
    };
}
pub use refuse;
