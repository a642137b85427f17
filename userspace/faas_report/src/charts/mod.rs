//! The pictures of a comparison.
//!
//! All are at most as wide as a phone, so that their text has the same size
//! there as on a screen, where several are side by side.

mod axis;
mod bars;
mod cdf;
pub mod lines;
mod panels;
mod slice;

use super::style::{self, Style};
use super::svg::Picture;
use super::Comparison;
use faas_data::summary::Summary;

pub use bars::{relative, switches};
pub use cdf::{key, rte, slowdown, turnaround};
pub use panels::{by_service, queue_delay, Panels};
pub use slice::slice;

/// Width of a picture in pixels.
const WIDTH: f64 = 380.0;

/// A row with its look.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its index, for CSS classes.
    pub index: usize,
    /// Its numbers.
    pub summary: &'a Summary,
    /// Its look.
    pub style: Style,
}

impl Row<'_> {
    /// The CSS class of its elements, with which the legend can hide them.
    pub fn class(&self) -> String {
        format!("r{}", self.index)
    }
}

/// The rows with their looks, in order.
pub fn rows(comparison: &Comparison) -> Vec<Row<'_>> {
    let styles = style::styles(comparison);
    let rows = comparison.rows.iter().zip(styles).enumerate();
    rows.map(|(index, (summary, style))| Row {
        index,
        summary,
        style,
    })
    .collect()
}

/// All pictures, each for its own file. Empty pictures are left out.
pub fn all(comparison: &Comparison) -> Vec<Picture> {
    let distributions = [turnaround, slowdown, rte].map(|draw| {
        let legend = cdf::legend(comparison);
        draw(comparison).map(|picture| cdf::above(picture, &legend))
    });
    let panels = [by_service(comparison), queue_delay(comparison)];
    let mut all: Vec<Picture> = distributions.into_iter().flatten().collect();
    all.extend(relative(comparison));
    all.extend(switches(comparison));
    all.extend(panels[0].as_ref().map(Panels::together));
    all.extend(slice(comparison));
    all.extend(panels[1].as_ref().map(Panels::together));
    all
}

/// A number without unneeded decimals, for a tick.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A time in milliseconds, in seconds from 1 s on and in minutes from 1,000 s on.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 999_999.0 => format!("{} min", plain((ms / 60e3).round())),
        ms if ms >= 999.0 => format!("{} s", plain(ms / 1e3)),
        ms if (0.000_9..0.099).contains(&ms) => format!("{} µs", plain(ms * 1e3)),
        _ => format!("{} ms", plain(ms)),
    }
}

/// A factor.
fn times(value: f64) -> String {
    format!("{}x", plain(value))
}

/// The smallest and the largest of some values, if any.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        let (min, max) = range.unwrap_or((value, value));
        Some((min.min(value), max.max(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        assert_eq!(milliseconds(0.05), "50 µs");
        assert_eq!(milliseconds(0.1), "0.1 ms");
        assert_eq!(milliseconds(20.0), "20 ms");
        assert_eq!(milliseconds(5000.0), "5 s");
        assert_eq!(milliseconds(6e6), "100 min");
        assert_eq!(times(0.5), "0.5x");
    }

    #[test]
    fn a_range_of_nothing_is_none() {
        assert_eq!(range([].into_iter()), None);
        assert_eq!(range([3.0, 1.0, 2.0].into_iter()), Some((1.0, 3.0)));
    }
}
