//! The slice S: fixed compared with adaptive, and how it follows the arrivals.

use super::{at, mean, suffix, turnaround_chart, turnaround_table, Drawn, Figure};
use crate::chart::{Chart, Series};
use crate::data::Measured;
use crate::plan::{row, with, Row, Setting};
use crate::table::{ms, Table};
use anyhow::Result;
use faas_data::stats::sorted;
use sfs_policy::{IatWindow, SlicePolicy, DEFAULT_WINDOW};

const FIXED: [Row; 5] = [
    row("eevdf"),
    row("scx_sfs"),
    with("scx_sfs+s50", "--slice-us 50000"),
    with("scx_sfs+s100", "--slice-us 100000"),
    with("scx_sfs+s200", "--slice-us 200000"),
];

/// SFS's figure 9.
pub const FIGURE_9: Figure = Figure {
    id: "9",
    title: "S fixed at 50, 100 and 200 ms against S from the arrivals",
    settings: |size| {
        let setting = |load| Setting::table1(size, load, &FIXED);
        [0.8, 1.0].into_iter().map(setting).collect()
    },
    draw: |measured, _| {
        let mut drawn = Drawn::default();
        for (one, load) in measured.iter().zip([0.8, 1.0]) {
            drawn.tables.push(turnaround_table(&suffix(load), one));
            drawn.charts.push(turnaround_chart(&suffix(load), one));
        }
        Ok(drawn)
    },
    needs_traces: false,
};

/// SFS's figure 10.
pub const FIGURE_10: Figure = Figure {
    id: "10",
    title: "S over time, bursty arrivals",
    settings: |size| {
        let rows = [with("scx_sfs+stats", "--stats 1")];
        let setting = Setting::table1(size, 0.8, &rows);
        vec![setting.with_options("bursty", "bursty arrivals", "--arrivals bursty")]
    },
    draw: |measured, _| draw_slice(&measured[0]),
    needs_traces: false,
};

fn draw_slice(measured: &Measured) -> Result<Drawn> {
    let computed = computed(measured)?;
    let log = measured.logs.first().map_or("", |(_, log)| log);
    let printed = printed(measured, log);
    let mut table = Table::new(
        "slice",
        "S in ms",
        &["source", "values", "least", "mean", "p50", "most"],
    );
    let mut series = Vec::new();
    for (name, points) in [
        ("from the trace's arrivals", computed),
        ("scx_sfs", printed),
    ] {
        let values = sorted(points.iter().map(|point| point.1).collect());
        if values.is_empty() {
            continue;
        }
        let mut cells = vec![name.to_string(), values.len().to_string()];
        let shown = [
            values[0],
            mean(&values),
            at(&values, 500),
            values[values.len() - 1],
        ];
        cells.extend(shown.map(ms));
        table.push(cells);
        series.push(Series {
            name: name.to_string(),
            points,
        });
    }
    Ok(Drawn {
        tables: vec![table],
        charts: vec![Chart {
            name: "slice".into(),
            title: format!("S over time, {}", measured.title),
            x: "time, s".into(),
            y: "S, ms".into(),
            log_x: false,
            series,
        }],
        notes: vec![format!(
            "S is computed again after every {DEFAULT_WINDOW} arrivals. The live values are those that scx_sfs --stats 1 \
             printed. Their times follow from its count of arrivals, which includes the few \
             processes that are not invocations."
        )],
    })
}

/// S as the policy computes it from the trace after each window: (s, ms).
fn computed(measured: &Measured) -> Result<Vec<(f64, f64)>> {
    let policy = SlicePolicy::new(1_000_000, 1_000_000_000)?;
    let window = DEFAULT_WINDOW.get();
    let mut iats = IatWindow::new(DEFAULT_WINDOW);
    let mut points = Vec::new();
    for (index, one) in measured.trace.iter().enumerate() {
        iats.push(one.arrival_us * 1000);
        if (index + 1) % window == 0 {
            if let Some(mean) = iats.mean_iat_ns() {
                let slice_ms = policy.slice_ns(mean, measured.cpus) as f64 / 1e6;
                points.push((one.arrival_us as f64 / 1e6, slice_ms));
            }
        }
    }
    Ok(points)
}

/// S as printed by the loader: (s, ms).
fn printed(measured: &Measured, log: &str) -> Vec<(f64, f64)> {
    let mut arrived = 0;
    let mut points = Vec::new();
    for line in log.lines() {
        let (Some(slice_us), Some(count)) = (number(line, " S "), number(line, " arrivals "))
        else {
            continue;
        };
        arrived += count as usize;
        // There is nothing to show before the first and after the last arrival.
        if let Some(one) = measured.trace.get(arrived).filter(|_| arrived > 0) {
            points.push((one.arrival_us as f64 / 1e6, slice_us as f64 / 1e3));
        }
    }
    points
}

/// The number after `word` in a line of statistics.
fn number(line: &str, word: &str) -> Option<u64> {
    let rest = &line[line.find(word)? + word.len()..];
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_line_is_parsed() {
        let line = "[scx_sfs] filter    S  386000 us | arrivals    120 done     96 in credit";
        assert_eq!(number(line, " S "), Some(386_000));
        assert_eq!(number(line, " arrivals "), Some(120));
        assert_eq!(number("scx_sfs 0.1.0", " S "), None);
    }
}
