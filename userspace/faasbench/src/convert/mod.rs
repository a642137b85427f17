//! Converters: traces from the request lists of others.

pub mod sfs;

use crate::trace::Invocation;

/// What a converter made of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The invocations, sorted by arrival.
    pub invocations: Vec<Invocation>,
    /// What could not be used: line number, from 1, and why.
    pub skipped: Vec<(usize, String)>,
    /// Rows that stood behind a later arrival and were sorted in.
    pub out_of_order: usize,
}

impl Converted {
    /// Sorts by arrival and counts what was out of order; rows that arrive
    /// together keep their order.
    fn sort(&mut self) {
        let mut latest = 0;
        for one in &self.invocations {
            self.out_of_order += usize::from(one.arrival_us < latest);
            latest = latest.max(one.arrival_us);
        }
        self.invocations.sort_by_key(|one| one.arrival_us);
    }
}
