//! The figures: for each what is measured, what is drawn, and what was
//! published.
//!
//! The numbers of SFS's figures and what each shows are from memory of the paper
//! (SC'22, arXiv 2209.01709), whose text was not at hand: the title says what is
//! measured here, and that is what counts.

mod cdf;
mod faasched;
mod io;
mod loads;
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

/// What a figure comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawn {
    /// Tables, in order.
    pub tables: Vec<Table>,
    /// Pictures, in order.
    pub charts: Vec<Chart>,
    /// Sentences on what has to be known to read them.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// What `FIG` takes.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says, with its source; empty if it gives no figures.
    pub published: &'static [&'static str],
    /// What has to be measured.
    pub settings: fn(Size) -> Vec<Setting>,
    /// Makes it from what was measured, setting by setting; the folder is that of
    /// the traces of others.
    pub draw: fn(&[Measured], &Path) -> Result<Drawn>,
    /// Whether it needs the traces of others.
    pub needs_traces: bool,
}

/// All figures, in the order in which they are measured.
pub fn all() -> Vec<Figure> {
    let mut all = vec![loads::HEADLINE, cdf::FIGURE_2, loads::FIGURE_6];
    all.extend([loads::FIGURE_7, loads::FIGURE_8, slice::FIGURE_9]);
    all.extend([slice::FIGURE_10, io::FIGURE_11, overload::FIGURE_12]);
    all.extend([switches::FIGURE_16, thesis::W1, thesis::W2, thesis::W3]);
    all.extend([faasched::FIGURE, peers::FIGURE]);
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

/// The mean; NaN of nothing.
fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

/// The percentile of values in order at `per_mille`; NaN of nothing.
fn at(sorted: &[f64], per_mille: usize) -> f64 {
    stats::percentile(sorted, per_mille).unwrap_or(f64::NAN)
}

/// The share of values that `holds` holds of; NaN of nothing.
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

/// The table of turnarounds of a setting.
fn turnaround_table(name: &str, measured: &Measured) -> Table {
    let title = format!("Turnaround, {}", measured.title);
    let mut table = Table::new(name, &title, &TURNAROUND);
    for run in &measured.runs {
        table.push(turnaround_row(measured, run));
    }
    table
}

/// The cumulative distribution of what `values` says of each row.
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

/// The distribution of turnarounds of a setting.
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

/// `load0.65` of a title or folder that ends in a load, for names of files.
fn suffix(load: f64) -> String {
    format!("load{load:.2}")
}

#[cfg(test)]
mod tests;
