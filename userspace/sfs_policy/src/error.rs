//! Errors in the settings of a policy.

use core::error::Error;
use core::fmt;
use core::time::Duration;

/// A setting out of its range.
///
/// Only constructors fail; a constructed policy is valid and its decisions cannot fail.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A slice of 0 ns, which the kernel reads as "keep the current slice".
    ZeroSlice,
    /// A slice of `u64::MAX` ns, which the kernel reads as "never expires".
    InfiniteSlice,
    /// The shortest slice is longer than the longest.
    SliceBounds {
        /// The requested shortest slice, in ns.
        min_ns: u64,
        /// The requested longest slice, in ns.
        max_ns: u64,
    },
    /// An overload factor that is not a finite number above 0.
    Factor(f64),
    /// Fair-only mode would not be left below the threshold at which it is entered.
    Hysteresis {
        /// The factor at which fair-only mode is entered.
        factor: f64,
        /// The factor at which it is left; must be below `factor`.
        exit_factor: f64,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroSlice => f.write_str("a slice must be longer than 0 ns"),
            Self::InfiniteSlice => f.write_str("a slice must be finite"),
            Self::SliceBounds { min_ns, max_ns } => write!(
                f,
                "the shortest slice ({:?}) is longer than the longest ({:?})",
                Duration::from_nanos(min_ns),
                Duration::from_nanos(max_ns)
            ),
            Self::Factor(factor) => {
                write!(f, "an overload factor must be a finite number above 0, not {factor}")
            }
            Self::Hysteresis { factor, exit_factor } => write!(
                f,
                "the overload exit factor ({exit_factor}) must be below the overload factor ({factor})"
            ),
        }
    }
}

impl Error for PolicyError {}
