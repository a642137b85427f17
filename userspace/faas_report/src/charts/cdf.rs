//! Distributions: the share of invocations up to a value.

use super::axis::Axis;
use super::{milliseconds, plain, range, rows, times, Row, WIDTH};
use crate::style::mark;
use crate::svg::Picture;
use crate::{label, Comparison};
use faas_data::summary::{Cdf, Summary};

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;

/// Places of the marks on the first row's curve, as shares of invocations;
/// those of each further row are a little higher.
const MARKS: [f64; 4] = [0.1, 0.35, 0.6, 0.85];
const MARK_SHIFT: f64 = 0.018;

/// The distribution of turnaround.
pub fn turnaround(comparison: &Comparison) -> Option<Picture> {
    let values = |row: &Summary| row.cdf.as_ref().map(|cdf| cdf.turnaround_ms.clone());
    let label = "turnaround (log scale)";
    distribution(comparison, "cdf-turnaround", label, values, |range| {
        Axis::log(range, PIXELS, milliseconds)
    })
}

/// The distribution of slowdown.
pub fn slowdown(comparison: &Comparison) -> Option<Picture> {
    let values = |row: &Summary| row.cdf.as_ref().map(|cdf| cdf.slowdown.clone());
    let label = "slowdown (log scale)";
    distribution(comparison, "cdf-slowdown", label, values, |range| {
        Axis::log(range, PIXELS, times)
    })
}

/// The distribution of run-time effectiveness.
pub fn rte(comparison: &Comparison) -> Option<Picture> {
    let values = |row: &Summary| row.cdf.as_ref().map(rte_values);
    let label = "RTE (1: as on an idle machine)";
    distribution(comparison, "cdf-rte", label, values, |_| {
        Axis::linear((0.0, 1.0), PIXELS, plain)
    })
}

/// The values of RTE; summaries of an earlier version have only its inverse.
fn rte_values(cdf: &Cdf) -> Vec<f64> {
    if cdf.rte.is_empty() {
        let inverse = |slowdown: &f64| (1.0 / slowdown).min(1.0);
        return cdf.slowdown.iter().rev().map(inverse).collect();
    }
    cdf.rte.clone()
}

/// The pixels of the value axis.
const PIXELS: (f64, f64) = (LEFT, WIDTH - RIGHT);

fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share
}

fn distribution(
    comparison: &Comparison,
    name: &str,
    label: &str,
    values: fn(&Summary) -> Option<Vec<f64>>,
    axis: fn((f64, f64)) -> Axis,
) -> Option<Picture> {
    let rows = rows(comparison);
    let curves: Vec<(Row, Vec<f64>)> = rows
        .into_iter()
        .filter_map(|row| Some((row, values(row.summary)?)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let axis = axis(range(
        curves.iter().flat_map(|(_, values)| values).copied(),
    )?);
    let what = label.split(" (").next().unwrap_or(label);
    let title = format!("Distribution of {what}");
    let mut picture = Picture::new(name, (WIDTH, HEIGHT), &title, &describe(&curves, &axis));
    frame(&mut picture, &axis, label);
    for (place, (row, values)) in curves.iter().enumerate() {
        curve(&mut picture, row, values, &axis, place, comparison);
    }
    Some(picture)
}

/// The medians as text.
fn describe(curves: &[(Row, Vec<f64>)], axis: &Axis) -> String {
    let one = |(row, values): &(Row, Vec<f64>)| {
        let at = |per_cent: usize| axis.text(short(values[per_cent * (values.len() - 1) / 100]));
        format!("{} {} and {}", crate::label(row.summary), at(50), at(99))
    };
    let all: Vec<String> = curves.iter().map(one).collect();
    format!(
        "For each scheduler the share of invocations up to each value. Median and 99th percentile: {}.",
        all.join("; ")
    )
}

/// `value` rounded to three digits.
fn short(value: f64) -> f64 {
    if value <= 0.0 {
        return value;
    }
    let digits = 2 - libm::floor(libm::log10(value)) as i32;
    faas_data::stats::round(value, digits.max(0))
}

fn frame(picture: &mut Picture, axis: &Axis, label: &str) {
    for tick in axis.ticks(6) {
        let at = axis.at(tick);
        picture.line("grid", (at, TOP), (at, y(0.0)));
        picture.text("tick", (at, y(0.0) + 16.0), "middle", &axis.text(tick));
    }
    for per_cent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(per_cent) / 100.0);
        picture.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        let text = format!("{per_cent} %");
        picture.text("tick", (LEFT - 6.0, at + 4.0), "end", &text);
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    picture.text("label", (middle, HEIGHT - 8.0), "middle", label);
}

fn curve(
    picture: &mut Picture,
    row: &Row,
    values: &[f64],
    axis: &Axis,
    place: usize,
    comparison: &Comparison,
) {
    let last = (values.len().max(2) - 1) as f64;
    let point = |(step, value): (usize, &f64)| (axis.at(*value), y(step as f64 / last));
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(point).collect();
    let name = label(row.summary);
    picture.begin(&row.class());
    let class = format!("{} {}", line(row, comparison), row.style.classes());
    picture.curve(&class, &points, &name);
    for share in MARKS {
        let share = share + MARK_SHIFT * (place % 14) as f64;
        let step = ((share * last) as usize).min(points.len() - 1);
        let outline = mark(row.style.mark, points[step]);
        let class = format!("mark k{}", row.style.colour);
        picture.path(&class, &outline, &name);
    }
    picture.end();
}

/// The CSS class of a row's line: those of the baseline and of scx_sfs are wide.
fn line(row: &Row, comparison: &Comparison) -> &'static str {
    let is_ours = row.summary.scheduler.name == "scx_sfs";
    if comparison.baseline == Some(row.index) || is_ours {
        "line strong"
    } else {
        "line"
    }
}

/// The key of a row, 34 x 12 pixels.
pub fn key(row: &Row, comparison: &Comparison) -> Picture {
    let mut picture = Picture::new("key", (34.0, 12.0), "", "");
    let class = format!("{} {}", line(row, comparison), row.style.classes());
    picture.line(&class, (1.0, 6.0), (33.0, 6.0));
    let outline = mark(row.style.mark, (17.0, 6.0));
    picture.path(&format!("mark k{}", row.style.colour), &outline, "");
    picture
}

/// The keys of all rows with results, for stand-alone pictures.
pub fn legend(comparison: &Comparison) -> Picture {
    const COLUMN: f64 = 180.0;
    const LINE: f64 = 18.0;
    let rows = rows(comparison);
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.summary.cdf.is_some())
        .collect();
    let lines = rows.len().div_ceil(2);
    let height = 8.0 + LINE * lines as f64;
    let mut picture = Picture::new("legend", (WIDTH, height), "", "");
    for (place, row) in rows.iter().enumerate() {
        let column = (place / lines.max(1)) as f64;
        let at = (12.0 + COLUMN * column, LINE * (place % lines.max(1)) as f64);
        picture.place(&key(row, comparison), at);
        let name = faas_data::input::shorten(&label(row.summary), 22);
        picture.text("name", (at.0 + 40.0, at.1 + 10.0), "start", &name);
    }
    picture
}

/// A picture with its title above and a legend below.
pub fn above(picture: Picture, legend: &Picture) -> Picture {
    const HEAD: f64 = 26.0;
    let height = HEAD + picture.size().1 + legend.size().1;
    let mut both = Picture::new(
        &picture.name,
        (WIDTH, height),
        &picture.title,
        &picture.description,
    );
    both.text("head", (LEFT, 17.0), "start", &picture.title);
    both.place(&picture, (0.0, HEAD));
    both.place(legend, (0.0, HEAD + picture.size().1));
    both
}
