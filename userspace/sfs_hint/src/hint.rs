//! The content of a hint, and its limits.

use crate::error::{EncodeError, Problem};

/// Maximum length of a function name, in bytes of UTF-8.
pub const MAX_FUNCTION_BYTES: usize = 64;

/// Maximum number of hints in a datagram.
pub const MAX_HINTS: usize = 128;

/// Maximum length of a datagram, in bytes. Longer ones are refused as a whole,
/// so that a receiver knows how much memory it needs.
pub const MAX_DATAGRAM_BYTES: usize = 2048;

/// An arrival time of at least this, in ns, is wall-clock time: it is 9
/// September 2001 on `CLOCK_REALTIME`, and more than 31 years after boot on
/// `CLOCK_MONOTONIC`.
pub const WALL_CLOCK_FROM_NS: u64 = 1_000_000_000_000_000_000;

/// A platform's information about an invocation that begins.
///
/// `Some(0)` is the same as `None`: both are sent as "not given".
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The process that serves the invocation: its id in the initial pid
    /// namespace, from 1.
    pub pid: i32,
    /// When the request arrived, in ns of `CLOCK_MONOTONIC`, or of
    /// `CLOCK_REALTIME` from [`WALL_CLOCK_FROM_NS`] on. Default: when the hint
    /// arrives.
    pub arrived_at_ns: Option<u64>,
    /// The function's name: see [`check_function`].
    pub function: Option<String>,
    /// The CPU time that the invocation will need, in ns; for experiments with
    /// a scheduler that knows it.
    pub service_ns: Option<u64>,
    /// When the process started, in clock ticks since boot: field 22 of
    /// `/proc/PID/stat` (see [`started_ticks`](crate::process::started_ticks)).
    /// With it, a later process with the same id is not mistaken for this one.
    pub started_ticks: Option<u64>,
}

impl Hint {
    /// Returns a hint that only says that process `pid` begins an invocation.
    pub fn of(pid: i32) -> Self {
        Self {
            pid,
            ..Self::default()
        }
    }

    /// Checks what the types do not enforce.
    ///
    /// # Errors
    ///
    /// A process id below 1, or a name that [`check_function`] refuses.
    pub fn check(&self) -> Result<(), EncodeError> {
        self.borrowed().check().map_err(|problem| EncodeError {
            pid: self.pid,
            problem,
        })
    }

    /// Returns the same hint without owned memory.
    pub fn borrowed(&self) -> HintRef<'_> {
        HintRef {
            pid: self.pid,
            arrived_at_ns: self.arrived_at_ns,
            function: self.function.as_deref(),
            service_ns: self.service_ns,
            started_ticks: self.started_ticks,
        }
    }
}

/// A [`Hint`] whose name borrows from the datagram it was read from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HintRef<'a> {
    /// As [`Hint::pid`].
    pub pid: i32,
    /// As [`Hint::arrived_at_ns`].
    pub arrived_at_ns: Option<u64>,
    /// As [`Hint::function`].
    pub function: Option<&'a str>,
    /// As [`Hint::service_ns`].
    pub service_ns: Option<u64>,
    /// As [`Hint::started_ticks`].
    pub started_ticks: Option<u64>,
}

impl HintRef<'_> {
    /// Returns the same hint with owned memory.
    pub fn to_hint(&self) -> Hint {
        Hint {
            pid: self.pid,
            arrived_at_ns: self.arrived_at_ns,
            function: self.function.map(str::to_owned),
            service_ns: self.service_ns,
            started_ticks: self.started_ticks,
        }
    }

    /// Returns the arrival time on `CLOCK_MONOTONIC`, in ns. `wall_offset_ns`
    /// is the current `CLOCK_REALTIME` - `CLOCK_MONOTONIC`; wall-clock time
    /// before boot becomes 0.
    pub fn arrival_monotonic_ns(&self, wall_offset_ns: u64) -> Option<u64> {
        self.arrived_at_ns.map(|at| {
            if at < WALL_CLOCK_FROM_NS {
                at
            } else {
                at.saturating_sub(wall_offset_ns)
            }
        })
    }

    fn check(&self) -> Result<(), Problem> {
        if self.pid < 1 {
            return Err(Problem::Pid);
        }
        self.function.map_or(Ok(()), check_function)
    }
}

/// Checks the name of a function: 1 to [`MAX_FUNCTION_BYTES`] bytes, without
/// control characters and double quotes (the text form reserves those).
///
/// # Errors
///
/// The error in the name.
pub fn check_function(name: &str) -> Result<(), Problem> {
    if name.is_empty() || name.len() > MAX_FUNCTION_BYTES {
        return Err(Problem::NameLength(name.len()));
    }
    if name.chars().any(|c| c.is_control() || c == '"') {
        return Err(Problem::NameCharacter);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_time_is_converted_and_monotonic_time_is_not() {
        let at = |ns| HintRef {
            arrived_at_ns: Some(ns),
            ..HintRef::default()
        };
        let boot = 1_750_000_000_000_000_000;
        assert_eq!(at(5_000).arrival_monotonic_ns(boot), Some(5_000));
        assert_eq!(at(boot + 7_000).arrival_monotonic_ns(boot), Some(7_000));
        assert_eq!(at(boot - 1).arrival_monotonic_ns(boot), Some(0));
        assert_eq!(HintRef::default().arrival_monotonic_ns(boot), None);
        // 31 years of uptime are valid.
        let last = WALL_CLOCK_FROM_NS - 1;
        assert_eq!(at(last).arrival_monotonic_ns(boot), Some(last));
    }

    #[test]
    fn names_have_limits() {
        let long = "a".repeat(MAX_FUNCTION_BYTES);
        for name in ["resize", "my function", "größe", "a=b", long.as_str()] {
            assert_eq!(check_function(name), Ok(()), "{name:?}");
        }
        let too_long = "a".repeat(MAX_FUNCTION_BYTES + 1);
        for name in ["", "a\nb", "a\tb", "\u{85}", "say \"x\"", too_long.as_str()] {
            assert!(check_function(name).is_err(), "{name:?} was accepted");
        }
    }
}
