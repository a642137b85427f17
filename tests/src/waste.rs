//! CPUs that idle while a task waits that may run there, watched in every case.

use anyhow::Result;
use sfs_waste::{Report, Span, Stretch, Watch};

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
    notes.extend(total("under scx_sfs", &under_scx_sfs));
    notes.extend(under_scx_sfs.longest(NAMED).into_iter().map(stretch));
    let all = report.wasted_ns();
    if all > under_scx_sfs.wasted_ns() {
        notes.extend(total("in all", report));
    }
    notes
}

fn total(when: &str, report: &Report) -> Option<String> {
    let (wasted, watched) = (report.wasted_ns(), report.watched_ns());
    (wasted > 0).then(|| {
        format!(
            "{:.2} ms of idle CPUs wasted in {:.0} ms {when}, {:.2} at once",
            ms(wasted),
            ms(watched),
            ms(report.longest_ns())
        )
    })
}

fn stretch(one: &Stretch) -> String {
    format!(
        "{} ({}) waited {:.2} ms beside the idle CPU {}, from {:.3} s on",
        one.name,
        one.thread,
        ms(one.length_ns),
        one.cpu,
        one.from_ns as f64 / 1e9
    )
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
