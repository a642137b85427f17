//! Tables in the kernel half's format, and how functions share them.

use super::buckets::{bucket, start_ns, BUCKETS};
use super::rank::Ranks;
use alloc::vec::Vec;

/// The rank of an invocation by attained service, and when it worsens. With two bytes for each
/// bucket, a look-up computes the bucket number and does one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The rank in each bucket, lower is earlier; all below [`BUCKETS`].
    pub rank: [u8; BUCKETS],
    /// The next bucket with a worse rank; [`BUCKETS`] if there is none.
    pub worse: [u8; BUCKETS],
}

impl Table {
    /// The table with these ranks.
    pub fn new(rank: Ranks) -> Self {
        let next = |from: usize| {
            let later = rank[from..].iter().position(|one| *one > rank[from]);
            later.map_or(BUCKETS, |place| from + place) as u8
        };
        Self {
            worse: core::array::from_fn(next),
            rank,
        }
    }

    /// The rank after `attained_ns` of CPU time.
    pub fn rank(&self, attained_ns: u64) -> u8 {
        self.rank[bucket(attained_ns)]
    }

    /// The CPU time at which the rank after `attained_ns` worsens, in ns; None if it never
    /// does.
    pub fn worsens_ns(&self, attained_ns: u64) -> Option<u64> {
        let worse = usize::from(self.worse[bucket(attained_ns)]);
        (worse < BUCKETS).then(|| start_ns(worse))
    }

    /// The greatest difference between the two ranks, over all buckets.
    pub fn distance(&self, other: &Self) -> u8 {
        distance(&self.rank, &other.rank)
    }
}

fn distance(one: &Ranks, other: &Ranks) -> u8 {
    let pairs = one.iter().zip(other);
    pairs.fold(0, |most, (a, b)| most.max(a.abs_diff(*b)))
}

/// A bounded number of tables, each with its number of users.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    slots: Vec<(Ranks, u32)>,
    free: Vec<u16>,
    capacity: usize,
    tolerance: u8,
}

impl Tables {
    /// At most `capacity` tables (1 or more). Two functions share a table if their ranks differ
    /// by at most `tolerance` in every bucket.
    pub fn new(capacity: u16, tolerance: u8) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            capacity: usize::from(capacity.max(1)),
            tolerance,
        }
    }

    /// Number of tables in use.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn ranks(&self, id: u16) -> &Ranks {
        &self.slots[usize::from(id)].0
    }

    /// Selects a table for `ranks` to replace `present`: `present` itself if it is within the
    /// tolerance, otherwise the nearest table within it, otherwise a new one. Without room for
    /// a new one, the nearest of all. Also returns whether its content is new.
    pub fn exchange(&mut self, present: Option<u16>, ranks: &Ranks) -> (u16, bool) {
        if let Some(id) = present {
            if distance(self.ranks(id), ranks) <= self.tolerance {
                return (id, false);
            }
        }
        let nearest = self.nearest(ranks);
        // If nobody else uses the present table, it is free before a slot is sought.
        if let Some(id) = present {
            self.release(id);
        }
        let near = nearest.filter(|(_, apart)| *apart <= self.tolerance);
        let chosen = near.or_else(|| (self.len() == self.capacity).then_some(nearest?));
        let Some((id, _)) = chosen else {
            return (self.add(ranks), true);
        };
        self.slots[usize::from(id)].1 += 1;
        (id, false)
    }

    /// Removes one user of table `id`.
    pub fn release(&mut self, id: u16) {
        let users = &mut self.slots[usize::from(id)].1;
        *users -= 1;
        if *users == 0 {
            self.free.push(id);
        }
    }

    fn add(&mut self, ranks: &Ranks) -> u16 {
        let slot = (*ranks, 1);
        match self.free.pop() {
            Some(id) => {
                self.slots[usize::from(id)] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u16
            }
        }
    }

    fn nearest(&self, ranks: &Ranks) -> Option<(u16, u8)> {
        let used = self.slots.iter().enumerate();
        used.filter(|(_, (_, users))| *users > 0)
            .map(|(id, (other, _))| (id as u16, distance(other, ranks)))
            .min_by_key(|(_, apart)| *apart)
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::bucket;
    use super::*;

    const MS: u64 = 1_000_000;

    fn flat(rank: u8) -> Ranks {
        [rank; BUCKETS]
    }

    #[test]
    fn a_slice_lasts_until_the_rank_worsens() {
        let mut ranks = flat(40);
        let (better, worse) = (bucket(10 * MS), bucket(20 * MS));
        ranks[better..worse].fill(30);
        ranks[worse..].fill(60);
        let table = Table::new(ranks);
        assert_eq!((table.rank(0), table.rank(12 * MS)), (40, 30));
        assert_eq!(table.worsens_ns(0), Some(start_ns(worse)));
        assert_eq!(table.worsens_ns(12 * MS), Some(start_ns(worse)));
        assert_eq!(
            (table.rank(MS * 1000), table.worsens_ns(MS * 1000)),
            (60, None)
        );
    }

    #[test]
    fn similar_functions_share_a_table() {
        let mut tables = Tables::new(3, 2);
        assert_eq!(tables.exchange(None, &flat(10)), (0, true));
        assert_eq!(tables.exchange(None, &flat(12)), (0, false));
        assert_eq!(tables.exchange(None, &flat(13)), (1, true));
        // The nearest, not the first.
        assert_eq!(tables.exchange(None, &flat(12)), (1, false));
        assert_eq!(tables.len(), 2);
    }

    #[test]
    fn without_room_the_nearest_table_is_used() {
        let mut tables = Tables::new(2, 0);
        let (low, _) = tables.exchange(None, &flat(10));
        let (high, _) = tables.exchange(None, &flat(50));
        assert_eq!(tables.exchange(None, &flat(20)), (low, false));
        assert_eq!(tables.exchange(None, &flat(40)), (high, false));
    }

    #[test]
    fn unused_tables_are_reused() {
        let mut tables = Tables::new(2, 0);
        let (first, _) = tables.exchange(None, &flat(10));
        let (second, _) = tables.exchange(None, &flat(20));
        assert_eq!(tables.exchange(Some(first), &flat(30)), (first, true));
        tables.release(second);
        assert_eq!(tables.len(), 1);
        assert_eq!(tables.exchange(None, &flat(20)), (second, true));
    }

    #[test]
    fn a_present_table_is_kept_within_the_tolerance() {
        let mut tables = Tables::new(4, 2);
        let (first, _) = tables.exchange(None, &flat(10));
        tables.exchange(None, &flat(13));
        assert_eq!(tables.exchange(Some(first), &flat(12)), (first, false));
        assert_eq!(tables.exchange(Some(first), &flat(14)), (1, false));
        assert_eq!(tables.len(), 1);
    }
}
