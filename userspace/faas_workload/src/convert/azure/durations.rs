//! Durations of functions.

use super::super::Skipped;
use super::table::{Key, Table};
use crate::files::decimal;
use anyhow::{bail, Result};
use csv::StringRecord;
use faas_data::input::{shorten, MAX_US};
use std::collections::HashMap;
use std::io::Read;

/// Prefix of the names of percentile columns.
const PERCENTILE: &str = "percentile_Average_";

/// Minimum start of a logarithmic line, in milliseconds: the files have 0 for
/// shorter durations.
const LEAST_MS: f64 = 0.5;

/// Interpolation between two percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// A straight line; overstates the mean of skewed functions
    Linear,
    /// A straight line of the logarithms; closer to the mean
    Log,
}

/// A distribution given by some of its percentiles.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantiles {
    /// Share of the distribution, from 0 to 1, and the duration in milliseconds
    /// at that share. Both never decrease.
    points: Vec<(f64, f64)>,
}

impl Quantiles {
    /// The duration in milliseconds that a share of `unit` (0 to 1) does not
    /// exceed, interpolated between the two percentiles around it.
    pub(super) fn at(&self, unit: f64, between: Between) -> f64 {
        let next = self.points.partition_point(|(share, _)| *share <= unit);
        let (low, high) = match (self.points.get(next.wrapping_sub(1)), self.points.get(next)) {
            (Some(low), Some(high)) => (low, high),
            (Some(end), None) | (None, Some(end)) => return end.1,
            (None, None) => return 0.0,
        };
        let way = (unit - low.0) / (high.0 - low.0);
        if between == Between::Linear || high.1 <= LEAST_MS {
            return low.1 + (high.1 - low.1) * way;
        }
        let start = low.1.max(LEAST_MS);
        start * libm::pow(high.1 / start, way)
    }
}

/// The durations of all functions.
pub(super) struct Durations {
    pub(super) quantiles: HashMap<Key, Quantiles>,
    pub(super) skipped: Skipped,
}

/// Reads the file of durations.
pub(super) fn read(file: &str, reader: impl Read) -> Result<Durations> {
    let mut table = Table::open(file, reader)?;
    let mut columns = table.columns(percentile);
    columns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = (columns.first(), columns.last());
    if !matches!(ends, (Some((0.0, _)), Some((1.0, _)))) {
        bail!("{file}:1: want columns from {PERCENTILE}0 to {PERCENTILE}100");
    }
    if columns.windows(2).any(|two| two[0].0 == two[1].0) {
        bail!("{file}:1: two columns are for the same percentile");
    }
    let mut quantiles = HashMap::new();
    let mut skipped = Vec::new();
    while let Some((line, row)) = table.next()? {
        let parsed = row.and_then(|row| Ok((table.key(&row), parse(&row, &columns)?)));
        match parsed {
            Ok((key, _)) if quantiles.contains_key(&key) => {
                skipped.push((
                    line,
                    "this function's durations are in an earlier row".into(),
                ));
            }
            Ok((key, points)) => {
                quantiles.insert(key, Quantiles { points });
            }
            Err(reason) => skipped.push((line, reason)),
        }
    }
    Ok(Durations { quantiles, skipped })
}

/// The share, from 0 to 1, of a percentile column.
fn percentile(name: &str) -> Option<f64> {
    let share = decimal(name.strip_prefix(PERCENTILE)?)? / 100.0;
    (share <= 1.0).then_some(share)
}

fn parse(row: &StringRecord, columns: &[(f64, usize)]) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(columns.len());
    for (share, column) in columns {
        let text = &row[*column];
        let ms = decimal(text).filter(|ms| *ms <= MAX_US as f64 / 1e3);
        let ms =
            ms.ok_or_else(|| format!("`{}` is not a number of milliseconds", shorten(text, 40)))?;
        if points.last().is_some_and(|before| before.1 > ms) {
            return Err("its percentiles decrease".to_string());
        }
        points.push((*share, ms));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_percentiles_is_a_straight_line() {
        let quantiles = Quantiles {
            points: vec![(0.0, 10.0), (0.5, 20.0), (0.5, 30.0), (1.0, 130.0)],
        };
        let cases = [
            (0.0, 10.0),
            (0.25, 15.0),
            (0.499, 19.98),
            (0.5, 30.0),
            (0.75, 80.0),
            (1.0, 130.0),
        ];
        for (unit, ms) in cases {
            let found = quantiles.at(unit, Between::Linear);
            assert!((found - ms).abs() < 1e-9, "{found} at {unit}");
        }
    }

    #[test]
    fn or_a_straight_line_of_the_logarithms() {
        let quantiles = Quantiles {
            points: vec![(0.0, 0.0), (0.25, 0.0), (0.5, 8.0), (1.0, 800.0)],
        };
        // From 0.5 to 8 it doubles four times; from 8 to 800 it is ten times
        // as long in the middle.
        for (unit, ms) in [(0.1, 0.0), (0.3125, 1.0), (0.5, 8.0), (0.75, 80.0)] {
            let found = quantiles.at(unit, Between::Log);
            assert!((found - ms).abs() < 1e-9, "{found} at {unit}");
        }
    }

    #[test]
    fn columns_are_found_by_their_names() {
        assert_eq!(percentile("percentile_Average_0"), Some(0.0));
        assert_eq!(
            percentile("percentile_Average_99.9"),
            Some(0.9990000000000001)
        );
        for other in ["Average", "percentile_Average_", "percentile_Average_101"] {
            assert_eq!(percentile(other), None, "{other}");
        }
    }
}
