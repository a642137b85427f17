//! Cache lines that CPUs write and read in turns, counted while the kernel half runs.
//!
//! Each access of the kernel half to memory (`c/points.h`) and each change of a dispatch queue
//! finds its line where a protocol of the MESI kind would have it: a load by a CPU that has no
//! copy takes one from the line's last writer, and a store by a CPU that is not the only holder
//! takes the line from all others (Papamarcos and Patel, ISCA 1984). Such a transfer is near if
//! both CPUs share a cache, else far. The first access to a line counts for nothing, and no line
//! is evicted: what is counted is communication, not the size of caches.

use crate::state::{with, CpuId, State};
use crate::topology::Place;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_char, c_void, CStr};

/// Bytes of a cache line, as a shift.
const LINE: u32 = 6;
/// Bit of the numbers that stand for dispatch queues instead of lines.
const QUEUE: u64 = 1 << 63;
/// The model knows at most so many CPUs.
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
    fn holds(&self, cpu: CpuId) -> bool {
        self.holders[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    /// An access by `cpu`. Returns the CPU from which the line comes, if it comes from another one.
    fn access(&mut self, cpu: CpuId, is_store: bool) -> Option<CpuId> {
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

/// Lines of a machine.
#[derive(Debug)]
struct Lines {
    places: Vec<Place>,
    lines: HashMap<u64, Line>,
    /// The structures of lines in memory; what is not here is a task's.
    names: HashMap<u64, &'static str>,
    /// The names of maps, by their addresses.
    maps: HashMap<usize, &'static str>,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// By structure.
    pub structures: BTreeMap<String, Tally>,
    /// The line with most transfers, and its structure.
    pub hottest: Option<(String, Tally)>,
}

thread_local! {
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// A variable of the kernel half; `struct model_variable`.
#[repr(C)]
struct Variable {
    name: *const c_char,
    place: *const c_void,
    size: u64,
}

extern "C" {
    /// Reports accesses from now on, or not.
    fn model_trace(on: bool);
    /// The variables of the kernel half that have names: a table of `count` entries.
    fn model_list_variables(count: *mut u32) -> *const Variable;
}

/// Counts from now on, on a machine with these CPUs.
pub fn start(places: &[Place]) {
    let mut lines = Lines {
        places: places.to_vec(),
        lines: HashMap::new(),
        names: HashMap::new(),
        maps: HashMap::new(),
    };
    let mut count = 0;
    // SAFETY: returns a table of `count` entries that lives forever, with names that do.
    let variables = unsafe {
        let first = model_list_variables(&mut count);
        std::slice::from_raw_parts(first, count as usize)
    };
    for variable in variables {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(variable.name) };
        let name = name.to_str().unwrap_or("a variable");
        lines.name(variable.place as u64, variable.size, name);
        lines.maps.insert(variable.place as usize, name);
    }
    with(|s| {
        for (map, (place, size)) in s.maps.iter().filter_map(|(at, of)| Some((at, of.array()?))) {
            let name = lines.maps.get(map).copied().unwrap_or("a map");
            lines.name(place as u64, size as u64, name);
        }
    });
    LINES.with(|cell| *cell.borrow_mut() = Some(lines));
    // SAFETY: takes a plain value.
    unsafe { model_trace(true) };
}

/// Counts no more. Returns what was counted; `None`: nothing was.
pub fn end() -> Option<Report> {
    // SAFETY: takes a plain value.
    unsafe { model_trace(false) };
    let lines = LINES.with(|cell| cell.borrow_mut().take())?;
    let mut report = Report::default();
    let mut hottest: Option<(u64, Tally)> = None;
    for (&number, line) in &lines.lines {
        let of = report.structures.entry(lines.name_of(number)).or_default();
        of.accesses += line.tally.accesses;
        of.stores += line.tally.stores;
        of.near += line.tally.near;
        of.far += line.tally.far;
        let key = |(number, tally): (u64, Tally)| (tally.near + tally.far, number);
        if hottest.is_none_or(|other| key(other) < key((number, line.tally))) {
            hottest = Some((number, line.tally));
        }
    }
    report.hottest = hottest.map(|(number, tally)| (lines.name_of(number), tally));
    Some(report)
}

impl Lines {
    fn name(&mut self, place: u64, size: u64, name: &'static str) {
        for line in place >> LINE..=(place + size.max(1) - 1) >> LINE {
            self.names.insert(line, name);
        }
    }

    fn name_of(&self, number: u64) -> String {
        if number & QUEUE != 0 {
            return crate::timeline::queue_name(number & !QUEUE);
        }
        let name = self.names.get(&number).copied();
        name.unwrap_or("task_struct").to_string()
    }

    fn access(&mut self, number: u64, cpu: CpuId, is_store: bool) {
        let line = self.lines.entry(number).or_default();
        let from = line.access(cpu, is_store);
        let transfer = from.map(|from| self.places[from].cache == self.places[cpu].cache);
        line.tally.add(is_store, transfer);
    }
}

fn count(number: u64, cpu: CpuId, is_store: bool) {
    LINES.with(|cell| {
        if let Some(lines) = cell.borrow_mut().as_mut() {
            lines.access(number, cpu, is_store);
        }
    });
}

/// The kernel half loads from or stores to a place in memory.
#[no_mangle]
extern "C" fn model_touches(place: *const c_void, is_store: bool) {
    let cpu = with(|s| s.here);
    count(place as u64 >> LINE, cpu, is_store);
}

/// A queue, shared by CPUs, is looked at, or changed with its lock held.
pub fn queue(s: &State, queue: u64, is_change: bool) {
    // SCX_DSQ_FLAG_BUILTIN: a CPU's own.
    if queue & QUEUE == 0 {
        count(queue | QUEUE, s.here, is_change);
    }
}

/// A value of a map is there.
pub fn name_value(map: *const c_void, value: *const u8, size: usize) {
    LINES.with(|cell| {
        if let Some(lines) = cell.borrow_mut().as_mut().filter(|_| !value.is_null()) {
            let name = lines.maps.get(&(map as usize)).copied().unwrap_or("a map");
            lines.name(value as u64, size as u64, name);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

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
        let mut places = topology::flat(3);
        places[2].cache = 1;
        let mut lines = Lines {
            places,
            lines: HashMap::new(),
            names: HashMap::new(),
            maps: HashMap::new(),
        };
        lines.name(64, 8, "word");
        for cpu in [0, 1, 2, 2] {
            lines.access(1, cpu, true);
        }
        let expected = Tally {
            accesses: 4,
            stores: 4,
            near: 1,
            far: 1,
        };
        assert_eq!(lines.lines[&1].tally, expected);
        assert_eq!(lines.name_of(1), "word");
        assert_eq!(lines.name_of(2), "task_struct");
    }
}
