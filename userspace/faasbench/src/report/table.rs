//! The table of schedulers, for the terminal and for the page.

use super::Comparison;
use crate::scheduler::Status;
use crate::summary::stats::Stats;
use crate::summary::Summary;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// What stands where there is no number.
const NONE: &str = "-";

/// The columns of the main table, with line breaks for narrow terminals.
pub const COLUMNS: [&str; 9] = [
    "scheduler",
    "mean turnaround,\nall, ms",
    "short, ms",
    "long, ms",
    "slowdown\np99",
    "RTE\n>= 0.95",
    "involuntary\nswitches",
    "makespan,\ns",
    "failed",
];

/// The columns of the page's second table.
pub const MORE_COLUMNS: [&str; 11] = [
    "scheduler",
    "version",
    "arguments",
    "turnaround\np50, ms",
    "p99, ms",
    "queue delay\np50, ms",
    "p99, ms",
    "RTE\nmean",
    "RTE\n< 0.2",
    "CPU /\nservice",
    "arrival lag\nmean / max, ms",
];

/// The rows of the main table.
pub fn rows(comparison: &Comparison) -> Vec<[String; 9]> {
    let base = comparison.base();
    let row = |(index, one): (usize, &Summary)| {
        let base = base.filter(|_| comparison.baseline != Some(index));
        let turnaround = |of: fn(&Summary) -> Option<Stats>| against(of(one), base.and_then(of));
        [
            name(one),
            turnaround(|row| row.turnaround_ms),
            turnaround(|row| row.short.turnaround_ms),
            turnaround(|row| row.long.turnaround_ms),
            number(one.slowdown.map(|stats| stats.p99), 1),
            per_cent(one.rte.map(|rte| rte.at_least_095)),
            number(one.switches.map(|switches| switches.involuntary), 1),
            number(one.makespan_ms.map(|ms| ms / 1e3), 2),
            one.failed.to_string(),
        ]
    };
    comparison.rows.iter().enumerate().map(row).collect()
}

/// The rows of the page's second table.
pub fn more_rows(comparison: &Comparison) -> Vec<[String; 11]> {
    let row = |one: &Summary| {
        let lag = one.arrival_lag_ms;
        [
            name(one),
            one.scheduler.version.clone(),
            one.scheduler.args.clone(),
            number(one.turnaround_ms.map(|stats| stats.p50), 1),
            number(one.turnaround_ms.map(|stats| stats.p99), 1),
            number(one.queue_delay_ms.map(|stats| stats.p50), 1),
            number(one.queue_delay_ms.map(|stats| stats.p99), 1),
            number(one.rte.map(|rte| rte.mean), 3),
            per_cent(one.rte.map(|rte| rte.below_02)),
            number(one.cpu_over_service, 3),
            lag.map_or(NONE.into(), |lag| {
                format!("{:.2} / {:.2}", lag.mean, lag.max)
            }),
        ]
    };
    comparison.rows.iter().map(row).collect()
}

/// The main table as text.
pub fn terminal(comparison: &Comparison) -> String {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_header(COLUMNS);
    for row in rows(comparison) {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn name(row: &Summary) -> String {
    let name = super::label(row);
    match row.scheduler.status {
        Status::Ok => name,
        Status::NotLoaded => format!("{name} (did not load)"),
        Status::Ejected => format!("{name} (ejected)"),
        Status::Reloaded => format!("{name} (reloaded)"),
        Status::BadExit => format!("{name} (bad exit)"),
        Status::Lost => format!("{name} (lost)"),
    }
}

/// A mean, and its ratio to the baseline's.
fn against(own: Option<Stats>, base: Option<Stats>) -> String {
    let Some(own) = own else {
        return NONE.to_string();
    };
    match base {
        Some(base) if base.mean > 0.0 => {
            format!("{:.1} ({:.2}x)", own.mean, own.mean / base.mean)
        }
        _ => format!("{:.1}", own.mean),
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(NONE.to_string(), |value| format!("{value:.decimals$}"))
}

fn per_cent(share: Option<f64>) -> String {
    share.map_or(NONE.to_string(), |share| format!("{:.1} %", 100.0 * share))
}
