//! The cases, in the order in which they run.

mod credit;
mod lifecycle;
mod operator;
mod overload;
mod placement;
mod policies;
mod queues;
mod slice;

use crate::case::Case;

/// Returns all cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        operator::CASES,
        lifecycle::CASES,
        credit::CASES,
        queues::CASES,
        slice::CASES,
        overload::CASES,
        placement::CASES,
        policies::CASES,
    ]
    .into_iter()
    .flatten()
}
