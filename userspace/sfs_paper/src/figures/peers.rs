//! All schedulers side by side, at the size of `make bench`.

use super::{turnaround_chart, turnaround_table, Drawn, Figure};
use crate::plan::{row, Setting, Source};

/// The peers.
pub const FIGURE: Figure = Figure {
    id: "peers",
    title: "Other sched_ext schedulers on the same trace",
    settings: |size| {
        let rows = [
            "eevdf",
            "fifo",
            "rr",
            "batch",
            "ideal",
            "srtf",
            "scx_sfs",
            "scx_bpfland",
            "scx_flash",
            "scx_cosmos",
            "scx_rusty",
            "scx_p2dq",
            "scx_lavd",
            "scx_flow",
        ];
        vec![Setting {
            name: format!("{}-peers", size.table1),
            title: "Table I a quarter as long, load 1.0, 4 CPUs".into(),
            source: Source::Generated {
                workload: size.table1,
                load: 1.0,
                scale: 0.25,
                options: String::new(),
            },
            rows: rows.map(row).to_vec(),
            invocations: size.invocations.min(400),
            cpus: 4,
        }]
    },
    draw: |measured, _| {
        Ok(Drawn {
            tables: vec![turnaround_table("turnaround", &measured[0])],
            charts: vec![turnaround_chart("turnaround", &measured[0])],
            notes: vec![
                "Each runs with its defaults, in the version that `make peers` builds.".into(),
            ],
        })
    },
    needs_traces: false,
};
