//! BPF timers.

use sfs_kernel_model::state::{with, State};
use sfs_kernel_rules::timers;
use std::ffi::c_void;
use std::ptr;

/// A timer is a callback that no other CPU waits for, but it interrupts one: so it fires at most so
/// often in so long, ns.
const MOST: u32 = 20;
const SPAN_NS: u64 = 10_000_000;

/// A timer fires, if it has not been started again.
pub(super) fn fire(timer: usize, start: u64) {
    let Some(found) = with(|s| s.timers.get(&timer).copied()) else {
        return;
    };
    if found.start != start || found.callback.is_null() {
        return;
    }
    with(|s| count(s, timer));
    let mut key: u32 = 0;
    type Callback = unsafe extern "C" fn(*mut c_void, *mut u32, usize) -> i32;
    // SAFETY: the kernel half gave a function of this type as the timer's callback.
    unsafe {
        let callback: Callback = std::mem::transmute(found.callback);
        callback(found.map, ptr::from_mut(&mut key), timer);
    }
    timers::fired(timer);
}

/// Counts how often a timer fires.
fn count(s: &mut State, timer: usize) {
    let now = s.now;
    let Some(timer) = s.timers.get_mut(&timer) else {
        return;
    };
    let (from, times) = &mut timer.fired;
    if now - *from > SPAN_NS {
        (*from, *times) = (now, 0);
    }
    *times += 1;
    if *times == MOST + 1 {
        let us = (now - *from) / 1_000;
        s.finding(format!("a timer has fired {} times in {us} us", MOST + 1));
    }
}
