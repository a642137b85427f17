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
    /// Until its first sleep, an invocation that has used less than the start of this bucket has
    /// this rank, if that is better; 0: it has not. Below [`BUCKETS`].
    pub burst: u8,
}

/// What a table is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The ranks by attained service.
    pub ranks: Ranks,
    /// The bucket at whose start most invocations have slept for the first time; None: they do
    /// not sleep.
    pub burst: Option<u8>,
}

impl Shape {
    /// The rank of a new invocation.
    pub fn first(&self) -> u8 {
        let own = self.ranks[0];
        self.burst.map_or(own, |burst| own.min(burst))
    }

    /// The greatest difference between the two ranks, over all buckets. Functions that sleep and
    /// functions that do not are far from each other.
    fn distance(&self, other: &Self) -> u8 {
        let bursts = match (self.burst, other.burst) {
            (Some(one), Some(other)) => one.abs_diff(other),
            (None, None) => 0,
            _ => BUCKETS as u8,
        };
        distance(&self.ranks, &other.ranks).max(bursts)
    }
}

impl From<Ranks> for Shape {
    fn from(ranks: Ranks) -> Self {
        Self { ranks, burst: None }
    }
}

impl Table {
    /// The table with these ranks, whether the invocations sleep or not.
    pub fn new(ranks: Ranks) -> Self {
        Self::of(ranks.into())
    }

    /// The table of this shape.
    pub(super) fn of(shape: Shape) -> Self {
        let Shape { ranks: rank, burst } = shape;
        let next = |from: usize| {
            let later = rank[from..].iter().position(|one| *one > rank[from]);
            later.map_or(BUCKETS, |place| from + place) as u8
        };
        Self {
            worse: core::array::from_fn(next),
            burst: burst.map_or(0, |bucket| bucket.min(BUCKETS as u8 - 1)),
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
    slots: Vec<(Shape, u32)>,
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

    pub fn shape(&self, id: u16) -> &Shape {
        &self.slots[usize::from(id)].0
    }

    /// Selects a table of `shape` to replace `present`: `present` itself if it is within the
    /// tolerance, otherwise the nearest table within it, otherwise a new one. Without room for
    /// a new one, the nearest of all. Also returns whether its content is new.
    pub fn exchange(&mut self, present: Option<u16>, shape: &Shape) -> (u16, bool) {
        if let Some(id) = present {
            if self.shape(id).distance(shape) <= self.tolerance {
                return (id, false);
            }
        }
        let nearest = self.nearest(shape);
        // If nobody else uses the present table, it is free before a slot is sought.
        if let Some(id) = present {
            self.release(id);
        }
        let near = nearest.filter(|(_, apart)| *apart <= self.tolerance);
        let chosen = near.or_else(|| (self.len() == self.capacity).then_some(nearest?));
        let Some((id, _)) = chosen else {
            return (self.add(shape), true);
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

    fn add(&mut self, shape: &Shape) -> u16 {
        let slot = (*shape, 1);
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

    fn nearest(&self, shape: &Shape) -> Option<(u16, u8)> {
        let used = self.slots.iter().enumerate();
        used.filter(|(_, (_, users))| *users > 0)
            .map(|(id, (other, _))| (id as u16, other.distance(shape)))
            .min_by_key(|(_, apart)| *apart)
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::bucket;
    use super::*;

    const MS: u64 = 1_000_000;

    fn flat(rank: u8) -> Shape {
        [rank; BUCKETS].into()
    }

    #[test]
    fn a_slice_lasts_until_the_rank_worsens() {
        let mut ranks = [40; BUCKETS];
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
    fn functions_that_sleep_share_no_table_with_others() {
        let mut tables = Tables::new(4, 2);
        let sleeps = |burst| Shape {
            burst: Some(burst),
            ..flat(10)
        };
        assert_eq!(tables.exchange(None, &flat(10)), (0, true));
        assert_eq!(tables.exchange(None, &sleeps(5)), (1, true));
        assert_eq!(tables.exchange(None, &sleeps(7)), (1, false));
        assert_eq!(tables.exchange(None, &sleeps(8)), (2, true));
        assert_eq!((sleeps(5).first(), sleeps(20).first()), (5, 10));
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
