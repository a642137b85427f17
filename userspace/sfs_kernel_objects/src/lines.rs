//! Cache lines that CPUs write and read in turns.
//!
//! Each access finds its line where a protocol of the MESI kind would have it: a load by a CPU that
//! has no copy takes one from the line's last writer, and a store by a CPU that is not the only
//! holder takes the line from all others (Papamarcos and Patel, ISCA 1984). Such a transfer is near
//! if both CPUs share a cache, else far. The first access to a line counts for nothing, and no line
//! is evicted: what is counted is communication, not the size of caches.

use std::collections::HashMap;

/// There are at most so many CPUs.
const WORDS: usize = 1024 / 64;

/// What a structure, or a line, costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Loads and stores.
    pub accesses: u64,
    /// Stores, and changes of a queue, each with its lock.
    pub stores: u64,
    /// Transfers between CPUs that share a cache.
    pub near: u64,
    /// The other transfers.
    pub far: u64,
}

impl Tally {
    /// Adds the costs of another one.
    pub fn add_all(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.stores += other.stores;
        self.near += other.near;
        self.far += other.far;
    }

    /// Transfers, near and far.
    pub fn transfers(&self) -> u64 {
        self.near + self.far
    }

    fn add(&mut self, is_store: bool, transfer: Option<bool>) {
        self.accesses += 1;
        self.stores += u64::from(is_store);
        self.near += u64::from(transfer == Some(true));
        self.far += u64::from(transfer == Some(false));
    }
}

/// A line: who has written it last, and who has a copy.
#[derive(Debug, Default)]
struct Line {
    writer: Option<u16>,
    holders: [u64; WORDS],
    tally: Tally,
}

impl Line {
    fn holds(&self, cpu: usize) -> bool {
        self.holders[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    /// An access by `cpu`. Returns the CPU from which the line comes, if it comes from another one.
    fn access(&mut self, cpu: usize, is_store: bool) -> Option<usize> {
        let held = self.holds(cpu);
        let alone = held && self.holders.iter().map(|w| w.count_ones()).sum::<u32>() == 1;
        let other = || {
            let holders = self.holders.iter().enumerate();
            let cpus = holders.flat_map(|(word, &bits)| {
                (0..64)
                    .filter(move |bit| bits >> bit & 1 == 1)
                    .map(move |bit| word * 64 + bit)
            });
            let writer = self.writer.map(usize::from).filter(|&writer| writer != cpu);
            writer.or_else(|| cpus.into_iter().find(|&holder| holder != cpu))
        };
        let from = match (held, is_store) {
            (true, false) => None,
            (true, true) if alone => None,
            _ => other(),
        };
        if is_store {
            self.holders = [0; WORDS];
            self.writer = Some(cpu as u16);
        }
        self.holders[cpu / 64] |= 1 << (cpu % 64);
        from
    }
}

/// Lines of a machine, by number.
#[derive(Debug, Default)]
pub struct Lines {
    /// The cache of each CPU.
    caches: Vec<u16>,
    lines: HashMap<u64, Line>,
}

impl Lines {
    /// Of a machine whose CPUs have these caches, by number.
    pub fn new(caches: Vec<u16>) -> Self {
        Self {
            caches,
            lines: HashMap::new(),
        }
    }

    /// A CPU loads from a line, or stores to it.
    pub fn access(&mut self, number: u64, cpu: usize, is_store: bool) {
        let line = self.lines.entry(number).or_default();
        let from = line.access(cpu, is_store);
        let transfer = from.map(|from| self.caches[from] == self.caches[cpu]);
        line.tally.add(is_store, transfer);
    }

    /// Each line's number and what it has cost.
    pub fn tallies(&self) -> impl Iterator<Item = (u64, Tally)> + '_ {
        self.lines
            .iter()
            .map(|(&number, line)| (number, line.tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_when_another_cpu_has_written_it() {
        let mut line = Line::default();
        assert_eq!(line.access(0, false), None, "the first access");
        assert_eq!(line.access(0, true), None, "the only holder");
        assert_eq!(line.access(1, false), Some(0));
        assert_eq!(line.access(1, false), None, "a copy");
        assert_eq!(line.access(70, false), Some(0), "from the last writer");
        assert_eq!(line.access(0, true), Some(1), "the copies are gone");
        assert_eq!(line.access(0, true), None);
        assert_eq!(line.access(70, true), Some(0));
        assert_eq!(line.access(70, false), None);
    }

    #[test]
    fn transfers_are_near_within_a_cache_and_far_otherwise() {
        let mut lines = Lines::new(vec![0, 0, 1]);
        for cpu in [0, 1, 2, 2] {
            lines.access(1, cpu, true);
        }
        let expected = Tally {
            accesses: 4,
            stores: 4,
            near: 1,
            far: 1,
        };
        assert_eq!(lines.tallies().collect::<Vec<_>>(), [(1, expected)]);
    }
}
