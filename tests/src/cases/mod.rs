//! The cases, in the order in which they run.

mod lifecycle;

use crate::case::Case;

/// Returns all cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        lifecycle::CASES,
    ]
    .into_iter()
    .flatten()
}
