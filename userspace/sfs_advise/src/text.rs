//! The report as text, for 80 columns.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use faas_data::stats::Stats;
use sfs_text::wrap;

use crate::prediction::{Prediction, Role, Source};
use crate::report::Report;
use crate::seen::Seen;
use crate::verdict::Advice;

/// Width of the text, in columns.
const COLUMNS: usize = 80;

/// Returns the report as text; with colours for a terminal that has them.
pub fn of(report: &Report, is_coloured: bool) -> String {
    let mut text = seen(report);
    if !report.predictions.is_empty() {
        let _ = write!(text, "\n{}", predictions(report));
    }
    let verdict = &report.verdict;
    let colour = match verdict.advice {
        Advice::WorthIt => "32",
        Advice::Mixed | Advice::None => "33",
        Advice::NoGain | Advice::Worse => "1",
    };
    let sentence = wrap(&verdict.sentence, COLUMNS, 0);
    let sentence = match is_coloured {
        true => format!("\u{1b}[{colour}m{sentence}\u{1b}[0m"),
        false => sentence,
    };
    let _ = writeln!(text, "\n{sentence}");
    for doubt in &verdict.doubts {
        let doubt = sfs_text::line(doubt, sfs_text::LINE_CHARS);
        let _ = writeln!(text, "But: {}", wrap(&doubt, COLUMNS, 5));
    }
    text
}

fn ms(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn seen(report: &Report) -> String {
    let seen = &report.seen;
    let mut text = if report.is_recorded {
        format!(
            "Seen in {:.1} s under {}, on {} CPUs:\n",
            seen.seconds, report.scheduler, seen.cpus
        )
    } else {
        format!(
            "Of a trace of {:.1} s, on {} CPUs:\n",
            seen.seconds, seen.cpus
        )
    };
    let mut line = |what: &str, of: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {what:22}{}", wrap(&of, COLUMNS, 24));
    };
    line("invocations", invocations(seen));
    line("arrivals", arrivals(seen));
    if let Some(of) = &seen.service_ms {
        line("service time, ms", stats(of));
    }
    if let Some(of) = &seen.blocked_ms {
        line("time blocked, ms", stats(of));
    }
    if let (Some(up_to), Some(share)) = (seen.short_up_to_ms, seen.short_share) {
        let up_to = ms(up_to);
        let share = per_cent(share);
        line(
            "short ones (83 %)",
            format!("up to {up_to} ms, {share} of their CPU time"),
        );
    }
    line("load of functions", per_cent(seen.load));
    line("other work", others(seen));
    text
}

fn invocations(seen: &Seen) -> String {
    let mut text = format!(
        "{}, of which {} have ended and count; {} functions",
        seen.arrived, seen.ended, seen.functions
    );
    if seen.parents > 0 {
        let _ = write!(
            text,
            " ({} have started others: load, but not counted)",
            seen.parents
        );
    }
    text
}

fn arrivals(seen: &Seen) -> String {
    let rate = format!("{:.1} a second", seen.arrivals_per_s);
    match (seen.iat_ms, seen.iat_variation) {
        (Some(iat), Some(variation)) => format!(
            "{rate}, every {} ms, coefficient of variation {variation:.2}",
            ms(iat)
        ),
        _ => rate,
    }
}

fn stats(of: &Stats) -> String {
    format!(
        "mean {}, p50 {}, p90 {}, p99 {}, max {}",
        ms(of.mean),
        ms(of.p50),
        ms(of.p90),
        ms(of.p99),
        ms(of.max)
    )
}

fn others(seen: &Seen) -> String {
    match seen.others {
        None => "unknown: none is assumed".into(),
        Some(of) => format!(
            "{} of the CPUs (kernel and real-time {}, processes {})",
            per_cent(of.share()),
            per_cent(of.kernel.share),
            per_cent(of.processes.share)
        ),
    }
}

fn predictions(report: &Report) -> String {
    let mut grid = Table::new();
    let style = LineStyle::none().fill('-').junction('-');
    grid.load_style(TableStyle::new().header_separator(style));
    grid.set_header(["", "", "all", "short", "long", "slowdown"]);
    for row in &report.predictions {
        grid.add_row(cells(row));
    }
    for (index, column) in grid.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let note = match report.seen.others {
        Some(_) => "The simulated kernel has the other work as a task for each CPU.",
        None => "The simulated kernel has no other work.",
    };
    format!(
        "Mean turnaround in ms, and mean slowdown of all:\n{}\n{note}\n",
        grid.trim_fmt()
    )
}

fn cells(row: &Prediction) -> [String; 6] {
    let cell = |of: Option<f64>| of.map_or("-".to_owned(), ms);
    let slowdown = row.all.mean_slowdown;
    let name = match (row.role, row.source) {
        (Role::Reference, _) => "equal shares".to_owned(),
        _ => row.scheduler.clone(),
    };
    let source = match (row.role, row.source) {
        (Role::Reference, _) => "for comparison",
        (_, source @ (Source::Measured | Source::SimulatedKernel | Source::EqualShares)) => {
            source.name()
        }
    };
    [
        name,
        source.to_owned(),
        cell(row.all.mean_ms),
        cell(row.short.mean_ms),
        cell(row.long.mean_ms),
        slowdown.map_or("-".to_owned(), |of| format!("{of:.2}")),
    ]
}
