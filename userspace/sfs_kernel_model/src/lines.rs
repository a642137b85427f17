//! What the kernel half costs in cache lines ([`sfs_kernel_objects::lines`]): each of its accesses
//! to memory (`c/points.h`), and each look at a shared dispatch queue and change of it.

use crate::state::{with, CpuId, State};
use crate::timeline::queue_name;
use crate::topology::Place;
use sfs_kernel_objects::lines::{Lines, Tally};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_char, c_void, CStr};

/// Bytes of a cache line, as a shift.
const LINE: u32 = 6;
/// Bit of the numbers that stand for dispatch queues instead of lines.
const QUEUE: u64 = 1 << 63;

/// Counts while the kernel half runs.
#[derive(Debug, Default)]
struct Counter {
    lines: Lines,
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
    static COUNTER: RefCell<Option<Counter>> = const { RefCell::new(None) };
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
    let mut counter = Counter {
        lines: Lines::new(places.iter().map(|place| place.cache).collect()),
        ..Counter::default()
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
        counter.name(variable.place as u64, variable.size, name);
        counter.maps.insert(variable.place as usize, name);
    }
    with(|s| {
        for (map, (place, size)) in s.maps.iter().filter_map(|(at, of)| Some((at, of.array()?))) {
            let name = counter.maps.get(map).copied().unwrap_or("a map");
            counter.name(place as u64, size as u64, name);
        }
    });
    COUNTER.with(|cell| *cell.borrow_mut() = Some(counter));
    // SAFETY: takes a plain value.
    unsafe { model_trace(true) };
}

/// Counts no more. Returns what was counted; `None`: nothing was.
pub fn end() -> Option<Report> {
    // SAFETY: takes a plain value.
    unsafe { model_trace(false) };
    let counter = COUNTER.with(|cell| cell.borrow_mut().take())?;
    let mut report = Report::default();
    for (number, tally) in counter.lines.tallies() {
        let name = counter.name_of(number);
        report.structures.entry(name).or_default().add_all(&tally);
    }
    let hottest = counter
        .lines
        .tallies()
        .max_by_key(|(number, tally)| (tally.transfers(), *number));
    report.hottest = hottest.map(|(number, tally)| (counter.name_of(number), tally));
    Some(report)
}

impl Counter {
    fn name(&mut self, place: u64, size: u64, name: &'static str) {
        for line in place >> LINE..=(place + size.max(1) - 1) >> LINE {
            self.names.insert(line, name);
        }
    }

    fn name_of(&self, number: u64) -> String {
        if number & QUEUE != 0 {
            return queue_name(number & !QUEUE);
        }
        let name = self.names.get(&number).copied();
        name.unwrap_or("task_struct").to_string()
    }
}

fn count(number: u64, cpu: CpuId, is_store: bool) {
    COUNTER.with(|cell| {
        if let Some(counter) = cell.borrow_mut().as_mut() {
            counter.lines.access(number, cpu, is_store);
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
    COUNTER.with(|cell| {
        if let Some(counter) = cell.borrow_mut().as_mut().filter(|_| !value.is_null()) {
            let name = counter
                .maps
                .get(&(map as usize))
                .copied()
                .unwrap_or("a map");
            counter.name(value as u64, size as u64, name);
        }
    });
}
