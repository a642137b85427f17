//! Sandboxes for which the kernel half has no room or no memory.

use std::collections::BTreeMap;
use std::fmt::Display;

use tracing::warn;

/// Sandboxes that wait until others are gone, with their functions. Meanwhile
/// their tasks are not functions and run in FAIR.
#[derive(Debug, Default)]
pub struct LeftOut {
    waiting: BTreeMap<u64, u64>,
    complained: bool,
}

impl LeftOut {
    /// Leaves a sandbox out. Logs why, unless others are already left out.
    pub fn add(&mut self, id: u64, function: u64, error: &dyn Display) {
        self.waiting.insert(id, function);
        if !self.complained {
            self.complained = true;
            warn!(
                "no room for another sandbox ({error}): its tasks are not functions until \
                 other sandboxes are gone; --max-sandboxes makes more room"
            );
        }
    }

    /// Forgets sandbox `id`. Returns false if it was not left out.
    pub fn remove(&mut self, id: u64) -> bool {
        let found = self.waiting.remove(&id).is_some();
        self.complained &= !self.waiting.is_empty();
        found
    }

    /// Returns the id and function of the next sandbox: the oldest, judging by ids.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.waiting
            .first_key_value()
            .map(|(id, function)| (*id, *function))
    }

    /// Returns how many sandboxes are left out.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_sandboxes_wait_for_their_turn() {
        let mut left_out = LeftOut::default();
        left_out.add(7, 70, &"full");
        left_out.add(5, 50, &"full");
        left_out.add(9, 90, &"full");
        assert_eq!((left_out.len(), left_out.first()), (3, Some((5, 50))));
        assert!(left_out.remove(7));
        assert!(!left_out.remove(8));
        assert!(left_out.remove(5));
        assert_eq!((left_out.len(), left_out.first()), (1, Some((9, 90))));
    }

    #[test]
    fn a_shortage_is_logged_once() {
        let mut left_out = LeftOut::default();
        left_out.add(1, 1, &"full");
        left_out.remove(2);
        assert!(left_out.complained);
        left_out.remove(1);
        assert!(!left_out.complained);
    }
}
