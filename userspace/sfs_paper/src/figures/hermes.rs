//! Hermes's workloads on one worker of 12 cores: slowdown over load, in
//! simulation.
//!
//! Hermes chooses workers; a scheduler of one machine has no part in that. The
//! text's comparison of policies on the worker (processor sharing, SRPT) is one
//! of ours.

use super::{at, Drawn, Figure};
use crate::chart::{Chart, Series};
use crate::data::{Measured, Run};
use crate::plan::{row, Setting, Size};
use crate::table::{ms, Table};
use faas_data::stats::sorted;

/// The loads.
const LOADS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// Cores of a worker of the text.
const CPUS: u32 = 12;

/// Invocations: the log-normal distribution needs many.
const INVOCATIONS: u32 = 50_000;

/// Hermes's MS Representative.
pub const FIGURE: Figure = Figure {
    id: "hermes",
    title: "Hermes's MS Representative on one worker of 12 cores: slowdown over load, simulated",
    settings: over,
    draw: |measured, _| Ok(draw(measured)),
    needs_traces: false,
};

fn over(size: Size) -> Vec<Setting> {
    let rows = ["ps", "srtf", "las", "sfs"].map(row);
    let setting = |load| {
        let setting = Setting::generated(size, "hermes", load, &rows);
        let mut setting = Setting {
            title: setting.title.clone(),
            ..setting.with_options("simulated", "", "--mix ms-representative")
        };
        setting.invocations = INVOCATIONS;
        setting.cpus = CPUS;
        setting
    };
    LOADS.into_iter().map(setting).collect()
}

/// A percentile of the slowdown.
fn slowdown(run: &Run, per_mille: usize) -> f64 {
    let all = sorted(run.measures.iter().map(|one| one.slowdown).collect());
    at(&all, per_mille)
}

fn draw(measured: &[Measured]) -> Drawn {
    let columns = ["load and policy", "p50", "p99", "p99.9"];
    let mut table = Table::new("slowdown", "Slowdown", &columns);
    for (one, load) in measured.iter().zip(LOADS) {
        for run in &one.runs {
            let mut cells = vec![format!("{load:?}, {}", run.label())];
            cells.extend([500, 990, 999].map(|per_mille| ms(slowdown(run, per_mille))));
            table.push(cells);
        }
    }
    let line = |(index, run): (usize, &Run)| Series {
        name: run.label(),
        points: measured
            .iter()
            .zip(LOADS)
            .map(|(one, load)| (load, slowdown(&one.runs[index], 990)))
            .collect(),
    };
    let rows = measured.first().map_or(&[][..], |one| &one.runs);
    Drawn {
        tables: vec![table],
        charts: vec![Chart {
            name: "p99".into(),
            title: "99th percentile of the slowdown".into(),
            x: "load".into(),
            y: "slowdown".into(),
            log_x: false,
            series: rows.iter().enumerate().map(line).collect(),
        }],
        notes: vec![
            "srtf is the text's SRPT, ps its processor sharing. Its FCFS is `fifo` of sfs_sim, which is no row here: fifo is \
             SCHED_FIFO in make bench."
                .into(),
        ],
    }
}
