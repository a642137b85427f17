//! The cases, in the order in which they run.

mod boundaries;
mod credit;
mod groups;
mod hints;
mod learned;
mod lifecycle;
mod operator;
mod overload;
mod placement;
mod policies;
mod queues;
mod sandboxes;
mod slice;

use crate::case::Case;

/// Returns all cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        operator::CASES,
        lifecycle::CASES,
        credit::CASES,
        boundaries::CASES,
        sandboxes::CASES,
        groups::CASES,
        hints::CASES,
        learned::CASES,
        queues::CASES,
        slice::CASES,
        overload::CASES,
        placement::CASES,
        policies::CASES,
    ]
    .into_iter()
    .flatten()
}
