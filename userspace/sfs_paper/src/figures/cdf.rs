//! Turnaround and run-time effectiveness under the kernel's own policies,
//! compared with the bounds.

use super::loads::{effectiveness_row, EFFECTIVENESS};
use super::{suffix, turnaround_chart, turnaround_table, Drawn, Figure};
use crate::plan::{row, Setting};
use crate::table::Table;

/// The loads of that figure.
const LOADS: [f64; 2] = [0.8, 1.0];

/// SFS's figure 2.
pub const FIGURE_2: Figure = Figure {
    id: "2",
    title: "Turnaround and RTE under the kernel's policies and under the bounds, loads 0.8 and 1.0",
    settings: |size| {
        let rows = ["eevdf", "fifo", "rr", "ps", "srtf", "ideal"].map(row);
        let setting = |load| Setting::table1(size, load, &rows);
        LOADS.into_iter().map(setting).collect()
    },
    draw: |measured, _| {
        let mut drawn = Drawn::default();
        let mut table = Table::new("rte", "Run-time effectiveness", &EFFECTIVENESS);
        for (one, load) in measured.iter().zip(LOADS) {
            drawn.tables.push(turnaround_table(&suffix(load), one));
            drawn.charts.push(turnaround_chart(&suffix(load), one));
            for run in &one.runs {
                table.push(effectiveness_row(load, run));
            }
        }
        drawn.tables.push(table);
        Ok(drawn)
    },
    needs_traces: false,
};
