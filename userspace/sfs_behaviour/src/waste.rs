//! CPUs that idle while a task waits that may run there, watched in every case.

use anyhow::Result;
use sfs_waste::{total, Report, Span, Watch};

/// Room for the events of one case: some 760,000.
const BYTES: u32 = 64 << 20;

/// Loads what watches.
///
/// # Errors
///
/// The kernel does not take it.
pub fn watch() -> Result<Watch> {
    Watch::load(BYTES)
}

/// How many stretches are named.
const NAMED: usize = 3;

/// Says what was wasted, if anything was: while scx_sfs was at work (`spans`), and else, as
/// while it was loaded and unloaded.
pub fn notes(report: &Report, spans: &[Span]) -> Vec<String> {
    let mut notes = Vec::new();
    if report.lost > 0 {
        notes.push(format!("{} scheduling events were lost", report.lost));
    }
    let under_scx_sfs = report.during(spans);
    if under_scx_sfs.wasted_ns() > 0 {
        notes.push(format!("under scx_sfs: {}", total(&under_scx_sfs)));
    }
    let longest = under_scx_sfs.longest(NAMED).into_iter();
    notes.extend(longest.map(ToString::to_string));
    if report.wasted_ns() > under_scx_sfs.wasted_ns() {
        notes.push(format!("in all: {}", total(report)));
    }
    notes
}
