//! The SFS paper's OpenLambda experiments: fib, md and sa at three loads.

use super::loads::{effectiveness, effectiveness_row, gains, EFFECTIVENESS};
use super::{distribution, suffix, turnaround_chart, turnaround_table, Drawn, Figure};
use crate::plan::{row, Setting, Size};
use crate::table::Table;

/// The loads of these figures.
pub const LOADS: [f64; 3] = [0.8, 0.9, 1.0];

/// The setting at one load.
pub fn setting(size: Size, load: f64) -> Setting {
    let rows = ["eevdf", "scx_sfs", "srtf", "ideal"].map(row);
    Setting::generated(size, "openlambda", load, &rows)
}

fn settings(size: Size) -> Vec<Setting> {
    LOADS.into_iter().map(|load| setting(size, load)).collect()
}

/// SFS's figure 13.
pub const FIGURE_13: Figure = Figure {
    id: "13",
    title: "fib, md and sa: turnaround, loads 0.8 to 1.0",
    settings,
    draw: |measured, _| {
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            drawn.charts.push(turnaround_chart(&suffix(load), one));
        }
        drawn.tables.push(gains(measured));
        Ok(drawn)
    },
    needs_traces: false,
};

/// SFS's figure 14.
pub const FIGURE_14: Figure = Figure {
    id: "14",
    title: "fib, md and sa: run-time effectiveness, loads 0.8 to 1.0",
    settings,
    draw: |measured, _| {
        let mut table = Table::new("rte", "Run-time effectiveness", &EFFECTIVENESS);
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            for run in &one.runs {
                table.push(effectiveness_row(load, run));
            }
            let title = format!("Run-time effectiveness, {}", one.title);
            let mut chart = distribution(&suffix(load), &title, "RTE", &one.runs, effectiveness);
            chart.log_x = false;
            drawn.charts.push(chart);
        }
        drawn.tables.push(table);
        Ok(drawn)
    },
    needs_traces: false,
};

/// SFS's figure 15.
pub const FIGURE_15: Figure = Figure {
    id: "15",
    title: "fib, md and sa: percentiles of turnaround, loads 0.8 to 1.0",
    settings,
    draw: |measured, _| {
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip(LOADS) {
            drawn.tables.push(turnaround_table(&suffix(load), one));
        }
        Ok(drawn)
    },
    needs_traces: false,
};
