//! Transient overload: groups of invocations that arrive at once.

use super::{at, mean, turnaround_table, Drawn, Figure};
use crate::chart::{Chart, Series};
use crate::data::{Measured, Run};
use crate::plan::{row, with, Setting};
use crate::table::{ms, Table};
use faas_data::measure::Measure;
use faas_data::result::Record;
use faas_data::stats::sorted;

/// Invocations per point of the timeline.
const WINDOW: usize = 25;

/// SFS's figure 12.
pub const FIGURE_12: Figure = Figure {
    id: "12",
    title: "Overload: spikes of arrivals, with and without fair-only mode",
    settings: |size| {
        let rows = [
            row("eevdf"),
            row("scx_sfs"),
            with("scx_sfs+no-overload", "--no-overload"),
            row("sfs"),
            row("sfs-no-hybrid"),
        ];
        // Five spikes, as in the paper, with a twentieth of the invocations each,
        // which is not in its text.
        let spikes = format!(
            "--spikes 5 --spike-invocations {}",
            (size.invocations / 20).max(2)
        );
        let setting = Setting::table1(size, 0.8, &rows);
        vec![setting.with_options("five-spikes", "five spikes", &spikes)]
    },
    draw: |measured, _| {
        let one = &measured[0];
        Ok(Drawn {
            tables: vec![turnaround_table("turnaround", one), delays(one)],
            charts: vec![timeline(one)],
            notes: vec![format!(
                "A point of the timeline is the mean of {WINDOW} invocations that arrived in succession."
            )],
        })
    },
    needs_traces: false,
};

/// Queueing delays in milliseconds, in order of arrival.
fn waits(run: &Run) -> Vec<f64> {
    let wait = |one: &Measure| one.queue_delay_us as f64 / 1e3;
    run.measures.iter().map(wait).collect()
}

fn delays(measured: &Measured) -> Table {
    let columns = ["scheduler", "mean, ms", "p50, ms", "p99, ms", "longest, ms"];
    let mut table = Table::new("delay", "Queueing delay to the first run", &columns);
    for run in &measured.runs {
        let all = sorted(waits(run));
        let mut cells = vec![run.label(), ms(mean(&all))];
        cells.extend([500, 990, 1000].map(|per_mille| ms(at(&all, per_mille))));
        table.push(cells);
    }
    table
}

fn timeline(measured: &Measured) -> Chart {
    let line = |run: &Run| {
        let point = |group: &[Record]| {
            let end = |one: &Record| Some((one.completed()?.1 - one.arrival_us) as f64 / 1e3);
            let values: Vec<f64> = group.iter().filter_map(end).collect();
            (!values.is_empty()).then(|| (group[0].arrival_us as f64 / 1e6, mean(&values)))
        };
        Series {
            name: run.label(),
            points: run.records.chunks(WINDOW).filter_map(point).collect(),
        }
    };
    Chart {
        name: "timeline".into(),
        title: format!("Turnaround over time, {}", measured.title),
        x: "arrival, s".into(),
        y: "turnaround, ms".into(),
        log_x: false,
        series: measured.runs.iter().map(line).collect(),
    }
}
