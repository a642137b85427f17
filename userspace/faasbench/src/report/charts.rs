//! The plots of the page.

use super::svg::{LogAxis, Picture};
use super::Comparison;
use crate::summary::{Cdf, Summary};

/// Number of colours that rows take turns with; see the page's style.
const COLOURS: usize = 6;

/// Number of kinds of lines, one for each round through the colours.
const DASHES: usize = 3;

/// The picture's size and margins in pixels.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 48.0;

/// The CSS classes of a row's line: the baseline is grey and wide, the others
/// take turns with the colours, then with kinds of lines.
pub fn classes(comparison: &Comparison, index: usize) -> String {
    if comparison.baseline == Some(index) {
        return "line base".to_string();
    }
    let before = comparison.baseline.is_some_and(|base| base < index);
    let turn = index - usize::from(before);
    format!("line c{} d{}", turn % COLOURS, turn / COLOURS % DASHES)
}

/// The distribution of turnaround.
pub fn turnaround(comparison: &Comparison) -> String {
    distribution(
        comparison,
        "turnaround (log scale)",
        |cdf| &cdf.turnaround_ms,
        milliseconds,
    )
}

/// The distribution of slowdown.
pub fn slowdown(comparison: &Comparison) -> String {
    distribution(
        comparison,
        "slowdown: turnaround / uncontended duration (log scale)",
        |cdf| &cdf.slowdown,
        |value| format!("{}x", plain(value)),
    )
}

fn distribution(
    comparison: &Comparison,
    label: &str,
    values: fn(&Cdf) -> &Vec<f64>,
    unit: fn(f64) -> String,
) -> String {
    let mut picture = Picture::new(WIDTH, HEIGHT, &format!("Distribution of {label}"));
    let curves = |row: &Summary| row.cdf.as_ref().map(|cdf| values(cdf).clone());
    let curves: Vec<Option<Vec<f64>>> = comparison.rows.iter().map(curves).collect();
    let all = || curves.iter().flatten().flatten().copied();
    let (min, max) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let x = LogAxis::new(min.min(max), max, LEFT, WIDTH - RIGHT);
    let y = |share: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share;
    for tick in x.ticks() {
        let at = x.at(tick);
        picture.line("grid", (at, TOP), (at, y(0.0)));
        picture.text("tick", (at, y(0.0) + 18.0), "middle", &unit(tick));
    }
    for per_cent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(per_cent) / 100.0);
        picture.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        let text = format!("{per_cent} %");
        picture.text("tick", (LEFT - 8.0, at + 4.0), "end", &text);
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    picture.text("label", (middle, HEIGHT - 8.0), "middle", label);
    picture.upright("label", (16.0, y(0.5)), "share of invocations");
    for (index, curve) in curves.iter().enumerate() {
        let Some(values) = curve else { continue };
        let last = (values.len().max(2) - 1) as f64;
        let point = |(step, value): (usize, &f64)| (x.at(*value), y(step as f64 / last));
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(point).collect();
        let name = super::label(&comparison.rows[index]);
        picture.curve(&classes(comparison, index), &points, &name);
    }
    picture.finish()
}

/// Mean turnaround of the short and of the long invocations, as bars that leave
/// the baseline's to the left (faster) or to the right (slower); nothing
/// without a baseline.
pub fn relative(comparison: &Comparison) -> Option<String> {
    let ratios = ratios(comparison)?;
    let name = &comparison.base()?.scheduler.name;
    let (left, row_height, top) = (160.0, 40.0, 6.0);
    let bottom = top + row_height * ratios.len() as f64;
    let label = format!("mean turnaround / {name}'s (log scale, left of 1 is faster)");
    let mut picture = Picture::new(WIDTH, bottom + 46.0, &label);
    let all = || {
        ratios
            .iter()
            .flat_map(|(_, pair)| pair.iter().flatten().copied())
    };
    let (min, max) = (all().fold(1.0, f64::min), all().fold(1.0, f64::max));
    // Room for the numbers beside the bars.
    let x = LogAxis::exact(min / 1.5, max * 1.5, left, WIDTH - RIGHT);
    for tick in x.ticks() {
        picture.line("grid", (x.at(tick), top), (x.at(tick), bottom));
        let text = format!("{}x", plain(tick));
        picture.text("tick", (x.at(tick), bottom + 18.0), "middle", &text);
    }
    picture.line("axis", (x.at(1.0), top), (x.at(1.0), bottom));
    let middle = (left + WIDTH - RIGHT) / 2.0;
    picture.text("label", (middle, bottom + 38.0), "middle", &label);
    for (index, (row, pair)) in ratios.iter().enumerate() {
        let y = top + row_height * (index as f64 + 0.5);
        let shown = crate::input::shorten(row, 22);
        picture.text("name", (left - 10.0, y + 4.0), "end", &shown);
        for (ratio, class, shift) in [(pair[0], "short", -8.0), (pair[1], "long", 8.0)] {
            let Some(ratio) = ratio else { continue };
            let title = format!("{row}, {class}: {ratio:.2}x");
            picture.bar(class, (x.at(1.0), x.at(ratio)), y + shift, 14.0, &title);
            let (beside, anchor) = if ratio < 1.0 {
                (-5.0, "end")
            } else {
                (5.0, "start")
            };
            let at = (x.at(ratio) + beside, y + shift + 4.0);
            picture.text("value", at, anchor, &format!("{ratio:.2}x"));
        }
    }
    Some(picture.finish())
}

/// Name and ratios (short, long) of all rows but the baseline.
fn ratios(comparison: &Comparison) -> Option<Vec<(String, [Option<f64>; 2])>> {
    let base = comparison.base()?;
    let ratio = |own: &Summary, of: fn(&Summary) -> Option<f64>| {
        let (own, base) = (of(own)?, of(base)?);
        (own > 0.0 && base > 0.0).then_some(own / base)
    };
    let others = comparison.rows.iter().enumerate();
    let others = others.filter(|(index, _)| comparison.baseline != Some(*index));
    let all: Vec<(String, [Option<f64>; 2])> = others
        .map(|(_, row)| {
            let short = ratio(row, |row| Some(row.short.turnaround_ms?.mean));
            let long = ratio(row, |row| Some(row.long.turnaround_ms?.mean));
            (super::label(row), [short, long])
        })
        .filter(|(_, pair)| pair.iter().any(Option::is_some))
        .collect();
    (!all.is_empty()).then_some(all)
}

/// A tick's number without needless decimals.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A tick in milliseconds, in seconds from 1 s on.
fn milliseconds(ms: f64) -> String {
    if ms >= 999.0 {
        return format!("{} s", plain(ms / 1e3));
    }
    format!("{} ms", plain(ms))
}
