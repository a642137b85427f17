//! BPF timers.

use std::ffi::c_void;

/// A BPF timer.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    /// Its map.
    pub map: *mut c_void,
    /// What it calls.
    pub callback: *mut c_void,
    /// Counts its starts: only the last one counts.
    pub start: u64,
    /// The begin of a span, and how often it has fired in it.
    pub fired: (u64, u32),
}
