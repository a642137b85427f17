//! The error of a case that cannot be tried on this machine.

use std::fmt::{self, Display};

/// The reason why a case cannot be tried on this machine. With `CI` set, `tests/skips` must list
/// it.
#[derive(Debug)]
pub struct Skip(pub &'static str);

impl Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Skip {}
