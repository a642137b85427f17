//! The cases, in the order in which they run.

use sfs_function_cases::{
    boundaries, credit, groups, hints, learned, overload, placement, policies, queues, sandboxes,
    shards, slice, tenants,
};
use sfs_loader_cases::{
    advice, configuration, disk, explanations, faults, files, guards, lifecycle, metrics, operator,
    restarts, texts,
};
use sfs_machine_cases::{crowds, daemons, interruptions, rates, sections, waiting};
use sfs_testbed::case::Case;

/// Returns all cases.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        operator::CASES,
        metrics::CASES,
        configuration::CASES,
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
        explanations::CASES,
        advice::CASES,
        guards::CASES,
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
