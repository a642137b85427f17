//! Invocations that block before they compute.

use super::{turnaround_chart, turnaround_table, Drawn, Figure};
use crate::data::Measured;
use crate::plan::{row, with, Setting};
use crate::table::{percent, Table};
use faas_data::stats;

/// SFS's figure 11.
pub const FIGURE_11: Figure = Figure {
    id: "11",
    title: "I/O: three quarters of the invocations block for 10 to 100 ms first",
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
            tables: vec![
                turnaround_table("turnaround", &measured[0]),
                demoted(&measured[0]),
            ],
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

/// Share of the invocations that the simulated policy demoted.
fn demoted(measured: &Measured) -> Table {
    let mut table = Table::new("demoted", "Demoted invocations", &["policy", "share"]);
    for run in measured
        .runs
        .iter()
        .filter(|run| run.name.starts_with("sfs"))
    {
        let lost: Vec<f64> = run
            .completed()
            .map(|one| one.involuntary_switches as f64)
            .collect();
        let share = stats::share(&lost, |count| count > 0.0).unwrap_or(f64::NAN);
        table.push(vec![run.label(), percent(share)]);
    }
    table
}
