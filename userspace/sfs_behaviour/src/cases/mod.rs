//! The cases, in the order in which they run.

mod boundaries;
mod credit;
mod crowds;
mod daemons;
mod disk;
mod faults;
mod files;
mod groups;
mod hints;
mod interruptions;
mod learned;
mod lifecycle;
mod operator;
mod overload;
mod placement;
mod policies;
mod queues;
mod rates;
mod restarts;
mod sandboxes;
mod sections;
mod shards;
mod slice;
mod tenants;
mod texts;
mod waiting;

use crate::case::Case;

/// Returns all cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        operator::CASES,
        lifecycle::CASES,
        texts::CASES,
        credit::CASES,
        tenants::CASES,
        boundaries::CASES,
        sandboxes::CASES,
        groups::CASES,
        hints::CASES,
        learned::CASES,
        queues::CASES,
        shards::CASES,
        slice::CASES,
        overload::CASES,
        placement::CASES,
        policies::CASES,
        interruptions::CASES,
        crowds::CASES,
        faults::CASES,
        files::CASES,
        sections::CASES,
        waiting::CASES,
        daemons::CASES,
        rates::CASES,
        restarts::CASES,
        disk::CASES,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;

    #[test]
    fn no_two_cases_share_a_name() {
        let mut names = HashSet::new();
        for case in all() {
            assert!(names.insert(case.name), "{} is there twice", case.name);
        }
    }
}
