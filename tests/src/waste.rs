//! CPUs that idle while a task waits that may run there, watched in every case.

use anyhow::Result;
use sfs_waste::{Report, Watch};

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

/// Says what was wasted, if anything was.
pub fn notes(report: &Report) -> Vec<String> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut notes = Vec::new();
    if report.lost > 0 {
        notes.push(format!("{} scheduling events were lost", report.lost));
    }
    if report.wasted_ns > 0 {
        let (wasted, watched) = (ms(report.wasted_ns), ms(report.watched_ns));
        notes.push(format!(
            "{wasted:.2} ms of idle CPUs wasted in {watched:.0} ms"
        ));
    }
    for one in &report.longest {
        notes.push(format!(
            "{} ({}) waited {:.2} ms beside the idle CPU {}, from {:.3} s on",
            one.name,
            one.thread,
            ms(one.length_ns),
            one.cpu,
            one.from_ns as f64 / 1e9
        ));
    }
    notes
}
