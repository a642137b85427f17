//! The records of functions, in bounded memory.
//!
//! The least recently used functions are forgotten, in two classes (a segmented LRU). Functions
//! seen once are forgotten before functions seen again, which may take up seven eighths of the
//! room. A stream of ever new functions thus cannot push out the others.

use super::burst::Burst;
use super::histogram::Histogram;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The record of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub key: u64,
    pub histogram: Histogram,
    /// Number of completions so far, saturating.
    pub completions: u32,
    /// The CPU time of all of them in ns, saturating.
    pub work_ns: u64,
    /// When its invocations first block; not saved, as a few completions tell.
    pub burst: Burst,
    /// Whether it was seen again recently.
    pub again: bool,
}

/// A function and its list links; 232 bytes.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub record: Record,
    /// Its table's number.
    pub table: Option<u16>,
    /// Whether it has changed since its table was made.
    pub changed: bool,
    /// Neighbours in its class, towards the most and least recently used.
    newer: u32,
    older: u32,
}

/// Head, tail and length of the list of a class.
#[derive(Debug, Clone, Copy)]
struct Class {
    newest: u32,
    oldest: u32,
    len: usize,
}

const EMPTY: Class = Class {
    newest: NONE,
    oldest: NONE,
    len: 0,
};

/// All remembered functions.
#[derive(Debug, Clone)]
pub(super) struct Functions {
    slots: Vec<Function>,
    places: BTreeMap<u64, u32>,
    /// Functions seen once, and functions seen again.
    classes: [Class; 2],
    capacity: usize,
}

impl Functions {
    /// Room for `capacity` functions, 8 or more.
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::new(),
            places: BTreeMap::new(),
            classes: [EMPTY; 2],
            capacity: capacity.clamp(8, NONE as usize),
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Maximum number of functions.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The function in `slot`, below [`len`](Self::len).
    pub fn get(&self, slot: usize) -> &Function {
        &self.slots[slot]
    }

    /// The same, mutable.
    pub fn at(&mut self, slot: usize) -> &mut Function {
        &mut self.slots[slot]
    }

    /// All functions, those seen once first, and in each class the least recently used first.
    /// Adding them again in this order yields the same lists.
    pub fn by_age(&self) -> impl Iterator<Item = &Function> {
        self.classes.iter().flat_map(|class| {
            let slot = |place: u32| self.slots.get(place as usize);
            core::iter::successors(slot(class.oldest), move |one| slot(one.newer))
        })
    }

    /// The slot of function `key`.
    pub fn slot(&self, key: u64) -> Option<usize> {
        self.places.get(&key).map(|place| *place as usize)
    }

    /// Counts a completion of function `key`, and makes it the most recently used of its class.
    /// Returns its slot and, if it is new, the function forgotten to make room.
    pub fn touch(&mut self, key: u64) -> (usize, Option<Function>) {
        let Some(slot) = self.slot(key) else {
            let forgotten = (self.len() == self.capacity).then(|| self.forget());
            let slot = self.add(Record {
                key,
                histogram: Histogram::default(),
                completions: 1,
                work_ns: 0,
                burst: Burst::default(),
                again: false,
            });
            return (slot, forgotten);
        };
        let record = &mut self.slots[slot].record;
        record.completions = record.completions.saturating_add(1);
        if self.classes[1].newest != slot as u32 {
            self.detach(slot as u32);
            self.slots[slot].record.again = true;
            self.attach(slot as u32);
            self.demote();
        }
        (slot, None)
    }

    /// Adds a saved function as the most recently used of its class. Returns false if there is
    /// no room or it already exists.
    pub fn restore(&mut self, record: Record) -> bool {
        let fits = self.len() < self.capacity && self.slot(record.key).is_none();
        if fits {
            self.add(record);
            self.demote();
        }
        fits
    }

    /// Adds `record`; there must be room.
    fn add(&mut self, record: Record) -> usize {
        let slot = self.slots.len();
        self.places.insert(record.key, slot as u32);
        self.slots.push(Function {
            record,
            table: None,
            changed: false,
            newer: NONE,
            older: NONE,
        });
        self.attach(slot as u32);
        slot
    }

    fn class_of(&mut self, place: u32) -> &mut Class {
        let again = self.slots[place as usize].record.again;
        &mut self.classes[usize::from(again)]
    }

    /// Removes `place` from its list.
    fn detach(&mut self, place: u32) {
        let Function { newer, older, .. } = self.slots[place as usize];
        match newer {
            NONE => self.class_of(place).newest = older,
            _ => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.class_of(place).oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
        self.class_of(place).len -= 1;
    }

    /// Inserts `place` at the newest end of its list.
    fn attach(&mut self, place: u32) {
        let class = self.class_of(place);
        let older = core::mem::replace(&mut class.newest, place);
        class.len += 1;
        match older {
            NONE => class.oldest = place,
            _ => self.slots[older as usize].newer = place,
        }
        let one = &mut self.slots[place as usize];
        (one.newer, one.older) = (NONE, older);
    }

    /// If functions seen again exceed their share, moves the oldest of them to those seen once.
    fn demote(&mut self) {
        let [_, again] = self.classes;
        if again.len > self.capacity / 8 * 7 {
            self.detach(again.oldest);
            self.slots[again.oldest as usize].record.again = false;
            self.attach(again.oldest);
        }
    }

    /// Removes the oldest function seen once. There is one, as the other class never takes all
    /// the room.
    fn forget(&mut self) -> Function {
        let place = self.classes[0].oldest;
        self.detach(place);
        let last = self.slots.len() as u32 - 1;
        if place != last {
            self.rename(last, place);
        }
        let forgotten = self.slots.swap_remove(place as usize);
        self.places.remove(&forgotten.record.key);
        forgotten
    }

    /// Makes the list refer to slot `from` as `to`.
    fn rename(&mut self, from: u32, to: u32) {
        let Function { newer, older, .. } = self.slots[from as usize];
        match newer {
            NONE => self.class_of(from).newest = to,
            _ => self.slots[newer as usize].older = to,
        }
        match older {
            NONE => self.class_of(from).oldest = to,
            _ => self.slots[older as usize].newer = to,
        }
        self.places.insert(self.slots[from as usize].record.key, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(functions: &Functions) -> Vec<u64> {
        functions.by_age().map(|one| one.record.key).collect()
    }

    fn touch(functions: &mut Functions, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            functions.touch(key);
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut functions = Functions::new(8);
        (0..8).for_each(|key| assert!(functions.touch(key).1.is_none()));
        assert_eq!(functions.touch(8).1.map(|one| one.record.key), Some(0));
        assert_eq!(keys(&functions), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn repeated_functions_outlive_single_ones() {
        let mut functions = Functions::new(8);
        touch(&mut functions, [1, 2, 1]);
        touch(&mut functions, 100..1000);
        assert_eq!(functions.len(), 8);
        assert!(functions.slot(1).is_some() && functions.slot(2).is_none());
    }

    #[test]
    fn repeated_functions_leave_room() {
        let mut functions = Functions::new(8);
        touch(&mut functions, 0..8);
        touch(&mut functions, 0..8);
        // 0 had to leave its class, and is now the oldest.
        assert_eq!(functions.touch(9).1.map(|one| one.record.key), Some(0));
    }

    #[test]
    fn agrees_with_two_lists() {
        let mut functions = Functions::new(16);
        let (mut once, mut again): (Vec<u64>, Vec<u64>) = Default::default();
        let mut random = 1u64;
        for _ in 0..5000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let key = (random >> 33) % 40;
            functions.touch(key);
            if once.contains(&key) || again.contains(&key) {
                once.retain(|one| *one != key);
                again.retain(|one| *one != key);
                again.push(key);
                if again.len() > 14 {
                    once.push(again.remove(0));
                }
            } else {
                if once.len() + again.len() == 16 {
                    once.remove(0);
                }
                once.push(key);
            }
            let want: Vec<u64> = once.iter().chain(&again).copied().collect();
            assert_eq!(keys(&functions), want);
        }
    }
}
