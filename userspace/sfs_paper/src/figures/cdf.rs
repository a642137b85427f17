//! Turnaround under the kernel's own policies, compared with the bounds.

use super::{turnaround_chart, turnaround_table, Drawn, Figure};
use crate::plan::{row, Setting};

/// SFS's figure 2.
pub const FIGURE_2: Figure = Figure {
    id: "2",
    title: "Turnaround under the kernel's policies and under the bounds, load 1.0",
    published: &[],
    settings: |size| {
        let rows = ["eevdf", "fifo", "rr", "srtf", "ideal"].map(row);
        vec![Setting::table1(size, 1.0, &rows)]
    },
    draw: |measured, _| {
        Ok(Drawn {
            tables: vec![turnaround_table("turnaround", &measured[0])],
            charts: vec![turnaround_chart("turnaround", &measured[0])],
            notes: vec!["The paper measured CFS; since Linux 6.6 the default is EEVDF.".into()],
        })
    },
    needs_traces: false,
};
