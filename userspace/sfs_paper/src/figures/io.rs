//! Invocations that block before they compute.

use super::{turnaround_chart, turnaround_table, Drawn, Figure};
use crate::plan::{row, with, Setting};

/// SFS's figure 11.
pub const FIGURE_11: Figure = Figure {
    id: "11",
    title: "I/O: three quarters of the invocations block for 10 to 100 ms first",
    published: &[],
    settings: |size| {
        let rows = [
            row("eevdf"),
            row("scx_sfs"),
            row("sfs"),
            with("sfs+no-io", "--charge-io"),
            row("srtf"),
            row("ideal"),
        ];
        let setting = Setting::table1(size, 1.0, &rows);
        vec![setting.with_options("io", "with I/O", "--io-share 0.75")]
    },
    draw: |measured, _| {
        Ok(Drawn {
            tables: vec![turnaround_table("turnaround", &measured[0])],
            charts: vec![turnaround_chart("turnaround", &measured[0])],
            notes: vec![
                "scx_sfs always counts CPU time only, so the ablation is simulated: under sfs+no-io \
                 blocking uses up the slice, too."
                    .into(),
                "Load counts CPU time only.".into(),
            ],
        })
    },
    needs_traces: false,
};
