//! What the loader reads and writes of the kernel half (`c/loader.h`).

use crate::ffi::TaskStruct;
use std::ffi::{c_char, c_void};

/// Set before load; `struct model_loader`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Tunables {
    /// The loader's process id.
    pub tgid: i32,
    /// The kernel half reports arrivals after so many.
    pub iat_window: u32,
    /// 1: it reports overload.
    pub overload: u32,
}

/// Maps by their addresses; `struct model_loader_maps`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Maps {
    /// Reports.
    pub events: *const c_void,
    /// Ends of invocations.
    pub completions: *const c_void,
    /// Times of arrivals.
    pub arrivals: *const c_void,
    /// Tables of ranks.
    pub rank_tables: *const c_void,
    /// Functions' tables.
    pub function_tables: *const c_void,
    /// Counters.
    pub stats: *const c_void,
    /// Hints that are to be applied.
    pub hints: *const c_void,
    /// Control groups.
    pub groups: *const c_void,
}

/// What both halves share, and what follows from it; times in ns; `struct model_words`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Words {
    /// 0: filter; 1: fair-only.
    pub mode: u32,
    /// The table of functions without one of their own.
    pub default_table: u32,
    /// S.
    pub slice_ns: u64,
    /// The wait that begins overload.
    pub overload_wait_ns: u64,
    /// The wait that ends it.
    pub recover_wait_ns: u64,
    /// 0: no overload that the loader has not answered.
    pub overload_since: u64,
    /// The wait in FILTER that means overload.
    pub overload_wait: u64,
    /// The time that the loader has for its answer.
    pub loader_grace_ns: u64,
    /// Of a new invocation.
    pub expected_delay: u64,
    /// Of FILTER's head; 0: there is none.
    pub head_wait: u64,
    /// The longest turn in FAIR.
    pub fair_slice_ns: u64,
}

pub use sfs_kernel_objects::reports::{Completion, Event};

/// `struct sfs_mode_switch`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ModeSwitch {
    /// The mode that is asked for: 0 filter, 1 fair-only.
    pub mode: u32,
    /// Tasks that were moved.
    pub moved: u32,
    /// 1: there are more to move.
    pub left: u32,
}

/// SFS_EVENT_ARRIVALS.
pub const ARRIVALS: u32 = 1;
/// SFS_EVENT_OVERLOAD_BEGUN.
pub const OVERLOAD_BEGUN: u32 = 2;
/// SFS_EVENT_OVERLOAD_OVER.
pub const OVERLOAD_OVER: u32 = 3;
/// SFS_IAT_SLOTS.
pub const IAT_SLOTS: u64 = 16384;
/// SFS_WATCHDOG_GUARD_NS.
pub const WATCHDOG_GUARD_NS: u64 = 10_000_000_000;
/// SFS_NO_TABLE.
pub const NO_TABLE: u32 = 0xffff;

extern "C" {
    /// Sets what the loader sets before load.
    pub fn model_tune_loader(tunables: *const Tunables);
    /// Writes the maps that the loader reads and writes.
    pub fn model_list_loader_maps(maps: *mut Maps);
    /// Sets S and the waits that begin and end overload, ns.
    pub fn model_set_slice(slice: u64, overload: u64, recover: u64);
    /// FILTER has so many shards; a byte for each CPU says which one is its own.
    pub fn model_tune_shards(shards: u32, of_cpus: *const u8);
    /// Arrivals so far.
    pub fn model_nr_arrivals() -> u64;
    /// Returns true if invocations begin at a boundary that takes the time of a wake-up before it.
    pub fn model_arrivals_lie_back() -> bool;
    /// Takes a report of overload back.
    pub fn model_dismiss_overload();
    /// Sets the rank table of functions without one of their own.
    pub fn model_set_default_table(table: u32);
    /// Sets the number of unread completions that wakes the loader up.
    pub fn model_set_completion_batch(batch: u32);
    /// Reads what both halves share.
    pub fn model_read_words(words: *mut Words);
    /// Tasks that a CPU has moved from FILTER to FAIR, from its statistics.
    pub fn model_relieved(of_cpu: *const u8) -> u64;
    /// Returns true if the task, which waits in FAIR, goes to FILTER when overload ends.
    pub fn model_is_due_to_filter(task: *mut TaskStruct) -> bool;
    /// Sets the name of the program that the task runs.
    pub fn model_name_task(task: *mut TaskStruct, name: *const c_char);

    /// Switches the mode, and moves a part of the tasks that wait. Returns a negative errno.
    pub fn switch_mode(switch: *mut ModeSwitch) -> i32;
}

/// The maps that the loader reads and writes.
pub fn maps() -> Maps {
    let mut maps = std::mem::MaybeUninit::uninit();
    // SAFETY: writes all of `maps`.
    unsafe {
        model_list_loader_maps(maps.as_mut_ptr());
        maps.assume_init()
    }
}

/// What both halves share. Not while the state is held: the kernel half asks it.
pub fn words() -> Words {
    let mut words = Words::default();
    // SAFETY: writes to `words` only.
    unsafe { model_read_words(&mut words) };
    words
}

/// A record of a ring buffer, if it has the size of a `T`.
///
/// # Safety
/// Every content of its bytes is a `T`.
pub unsafe fn record<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are as many bytes as a `T` has, and the caller promises the rest.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
