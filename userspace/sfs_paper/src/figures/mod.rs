//! The figures: for each, what is measured and what is drawn. What the papers
//! publish is in [`crate::published`], by the figures' IDs; the numbers among
//! these are those of the SFS paper (SC'22).

mod cdf;
mod faasched;
mod hermes;
mod io;
mod list;
mod loads;
mod openlambda;
mod overload;
mod peers;
mod slice;
mod switches;
mod thesis;

use crate::chart::{Chart, Series};
use crate::data::{Measured, Run};
use crate::plan::{Setting, Size};
use crate::table::{ms, Table};
use anyhow::Result;
use faas_data::stats::{self, sorted};
use std::path::Path;

/// The loads of the SFS paper.
pub const LOADS: [f64; 5] = [0.5, 0.65, 0.8, 0.9, 1.0];

/// The content of a drawn figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawn {
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// Pictures, in order.
    pub charts: Vec<Chart>,
    /// Notes needed to read them.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The ID that `FIG` takes.
    pub id: &'static str,
    /// The title.
    pub title: &'static str,
    /// The settings to measure.
    pub settings: fn(Size) -> Vec<Setting>,
    /// Draws the figure from the measured settings; the folder is that of the
    /// published traces.
    pub draw: fn(&[Measured], &Path) -> Result<Drawn>,
    /// Whether it needs the published traces.
    pub needs_traces: bool,
}

/// All figures, in the order of measurement.
pub fn all() -> Vec<Figure> {
    let mut all = vec![loads::HEADLINE, list::SIMULATED];
    all.extend(list::LIVE);
    all.extend([cdf::FIGURE_2, loads::FIGURE_6, loads::FIGURE_7]);
    all.extend([loads::FIGURE_8, slice::FIGURE_9, slice::FIGURE_10]);
    all.extend([io::FIGURE_11, overload::FIGURE_12, openlambda::FIGURE_13]);
    all.extend([openlambda::FIGURE_14, openlambda::FIGURE_15]);
    all.extend([switches::FIGURE_16, switches::SWITCHES, hermes::FIGURE]);
    all.extend([
        thesis::SIMULATED,
        thesis::W1,
        thesis::W2,
        thesis::W3,
        thesis::EQUAL,
    ]);
    all.extend([faasched::SIMULATED, faasched::LIVE, peers::FIGURE]);
    all
}

/// The columns of [`turnaround_row`].
const TURNAROUND: [&str; 8] = [
    "scheduler",
    "mean, ms",
    "short, ms",
    "long, ms",
    "p50, ms",
    "p90, ms",
    "p99, ms",
    "p99.9, ms",
];

/// The mean; NaN of an empty slice.
fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

/// The percentile of sorted values at `per_mille`; NaN of an empty slice.
fn at(sorted: &[f64], per_mille: usize) -> f64 {
    stats::percentile(sorted, per_mille).unwrap_or(f64::NAN)
}

/// The share of values for which `holds` is true; NaN of an empty slice.
fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    stats::share(values, holds).unwrap_or(f64::NAN)
}

/// Means and percentiles of turnaround.
fn turnaround_row(measured: &Measured, run: &Run) -> Vec<String> {
    let all = sorted(run.turnarounds_ms(|_| true));
    let mut cells = vec![run.label(), ms(mean(&all))];
    cells.push(ms(mean(&measured.short_ms(run))));
    cells.push(ms(mean(&measured.long_ms(run))));
    cells.extend([500, 900, 990, 999].map(|per_mille| ms(at(&all, per_mille))));
    cells
}

/// The table of a setting's turnarounds.
fn turnaround_table(name: &str, measured: &Measured) -> Table {
    let title = format!("Turnaround, {}", measured.title);
    let mut table = Table::new(name, &title, &TURNAROUND);
    for run in &measured.runs {
        table.push(turnaround_row(measured, run));
    }
    table
}

/// The cumulative distribution of the `values` of each row.
fn distribution(
    name: &str,
    title: &str,
    x: &str,
    runs: &[Run],
    values: impl Fn(&Run) -> Vec<f64>,
) -> Chart {
    let line = |run: &Run| Series {
        name: run.label(),
        points: crate::chart::cdf(&sorted(values(run))),
    };
    let lines = runs.iter().map(line);
    Chart {
        name: name.to_string(),
        title: title.to_string(),
        x: x.to_string(),
        y: "share of the invocations".to_string(),
        log_x: true,
        series: lines.filter(|line| !line.points.is_empty()).collect(),
    }
}

/// The distribution of a setting's turnarounds.
fn turnaround_chart(name: &str, measured: &Measured) -> Chart {
    let title = format!("Turnaround, {}", measured.title);
    distribution(name, &title, "turnaround, ms", &measured.runs, |run| {
        run.turnarounds_ms(|_| true)
    })
}

/// The ratio of the means of two samples; NaN if one is empty.
fn ratio(above: &[f64], below: &[f64]) -> f64 {
    mean(above) / mean(below)
}

/// The suffix of titles and folders that end in a load, such as `load0.65`, for
/// file names.
fn suffix(load: f64) -> String {
    format!("load{load:.2}")
}

#[cfg(test)]
mod tests;
