//! Further tables of the page.

use super::format::{compact, per_cent, shown, NONE};
use super::{heads, name, Cell, Table};
use crate::{label, short_sha, Comparison};
use faas_data::stats::Stats;
use faas_data::summary::groups::{Function, Group};
use faas_data::summary::Summary;

/// Number of functions on the page: the most invoked ones.
const FUNCTIONS: usize = 12;

type Of = fn(&Summary) -> Option<Stats>;

/// Mean, percentiles and maximum of turnaround, slowdown, queue delay and, if
/// any row has it, run-queue wait.
pub fn percentiles(comparison: &Comparison) -> Vec<Table> {
    let kinds: [(&str, Of); 4] = [
        ("Turnaround, ms.", |row| row.turnaround_ms),
        ("Slowdown.", |row| row.slowdown),
        ("Queue delay, ms: from arrival to the first run.", |row| {
            row.queue_delay_ms
        }),
        ("Run-queue wait, ms: runnable without running.", |row| {
            row.runqueue_wait_ms
        }),
    ];
    let is_known = |(_, stats): &(&str, Of)| comparison.rows.iter().any(|row| stats(row).is_some());
    let table = |(caption, stats): (&str, Of)| {
        let row = |(index, one): (usize, &Summary)| {
            let mut cells = vec![name(comparison, index)];
            cells.extend(of_stats(stats(one)).map(Cell::new));
            cells
        };
        Table {
            caption: caption.to_string(),
            columns: heads(
                &["scheduler"],
                ["mean", "p50", "p90", "p99", "p99.9", "max"].into_iter(),
                &[],
            ),
            rows: comparison.rows.iter().enumerate().map(row).collect(),
        }
    };
    kinds.into_iter().filter(is_known).map(table).collect()
}

fn of_stats(stats: Option<Stats>) -> [String; 6] {
    let of = |value: fn(Stats) -> f64| shown(stats.map(value), compact);
    [
        of(|stats| stats.mean),
        of(|stats| stats.p50),
        of(|stats| stats.p90),
        of(|stats| stats.p99),
        of(|stats| stats.p999),
        of(|stats| stats.max),
    ]
}

/// A table for each group: all, short, long, and the classes.
pub fn groups(comparison: &Comparison) -> Vec<Table> {
    let mut classes: Vec<&String> = comparison
        .rows
        .iter()
        .flat_map(|row| row.classes.keys())
        .collect();
    classes.sort();
    classes.dedup();
    let mut tables = vec![
        group(comparison, "All invocations.", |row| Some(all(row))),
        group(
            comparison,
            "Short: the shortest 83 % by service time.",
            |row| Some(row.short),
        ),
        group(comparison, "Long: the other 17 %.", |row| Some(row.long)),
    ];
    for class in classes {
        let caption = match class.as_str() {
            "LS" => "Class LS: latency-sensitive.".to_string(),
            "LD" => "Class LD: latency-tolerant.".to_string(),
            _ => format!("Class {class}."),
        };
        tables.push(group(comparison, &caption, |row| {
            row.classes.get(class).copied()
        }));
    }
    tables
}

/// All invocations of a row as a group.
fn all(row: &Summary) -> Group {
    Group {
        invocations: row.trace.invocations - row.failed.min(row.trace.invocations),
        failed: row.failed,
        turnaround_ms: row.turnaround_ms,
        slowdown: row.slowdown,
        queue_delay_ms: row.queue_delay_ms,
        rte: row.rte,
        jitter: row.jitter,
    }
}

fn group(comparison: &Comparison, caption: &str, of: impl Fn(&Summary) -> Option<Group>) -> Table {
    const COLUMNS: [&str; 13] = [
        "invocations",
        "failed",
        "turnaround mean, ms",
        "p99, ms",
        "IQR, ms",
        "variance, ms²",
        "slowdown mean",
        "p99",
        "IQR",
        "variance",
        "queue delay mean, ms",
        "RTE mean",
        "RTE >= 0.95",
    ];
    let row = |(index, one): (usize, &Summary)| {
        let mut cells = vec![name(comparison, index)];
        cells.extend(of_group(of(one)).map(Cell::new));
        cells
    };
    Table {
        caption: caption.to_string(),
        columns: heads(&["scheduler"], COLUMNS.into_iter(), &[]),
        rows: comparison.rows.iter().enumerate().map(row).collect(),
    }
}

fn of_group(group: Option<Group>) -> [String; 13] {
    let count = |of: fn(Group) -> usize| group.map_or(NONE.into(), |group| of(group).to_string());
    let number = |of: fn(Group) -> Option<f64>| shown(group.and_then(of), compact);
    [
        count(|group| group.invocations),
        count(|group| group.failed),
        number(|group| Some(group.turnaround_ms?.mean)),
        number(|group| Some(group.turnaround_ms?.p99)),
        number(|group| Some(group.jitter?.turnaround_ms.iqr)),
        number(|group| Some(group.jitter?.turnaround_ms.variance)),
        number(|group| Some(group.slowdown?.mean)),
        number(|group| Some(group.slowdown?.p99)),
        number(|group| Some(group.jitter?.slowdown.iqr)),
        number(|group| Some(group.jitter?.slowdown.variance)),
        number(|group| Some(group.queue_delay_ms?.mean)),
        shown(group.and_then(|group| Some(group.rte?.mean)), |rte| {
            format!("{rte:.3}")
        }),
        shown(
            group.and_then(|group| Some(group.rte?.at_least_095)),
            per_cent,
        ),
    ]
}

/// Turnaround of the most invoked functions: mean, and 99th percentile in small
/// print. Nothing if there is only one function.
pub fn functions(comparison: &Comparison) -> Option<Table> {
    let measured = comparison.rows.iter().enumerate();
    let measured: Vec<(usize, &Summary)> = measured
        .filter(|(_, row)| row.turnaround_ms.is_some() && !row.functions.is_empty())
        .collect();
    let (_, first) = measured.first()?;
    let members = |function: &Function| function.invocations + function.failed;
    let mut names: Vec<(&String, &Function)> = first.functions.iter().collect();
    names.sort_by_key(|(name, function)| (std::cmp::Reverse(members(function)), *name));
    let shown_names = &names[..names.len().min(FUNCTIONS)];
    let row = |(name, function): &(&String, &Function)| {
        let mut cells = vec![
            Cell::new((*name).clone()),
            Cell::new(members(function).to_string()),
            Cell::new(compact(function.service_ms)),
        ];
        cells.extend(
            measured
                .iter()
                .map(|(_, row)| of_function(row.functions.get(*name))),
        );
        cells
    };
    let labels: Vec<String> = measured.iter().map(|(_, row)| label(row)).collect();
    (names.len() > 1).then(|| Table {
        caption: format!(
            "Turnaround of {} of {} functions, the most invoked ones: mean in ms, in small print \
             the 99th percentile. The summaries have all functions, with more numbers.",
            shown_names.len(),
            names.len()
        ),
        columns: heads(
            &["function", "invocations", "mean service time, ms"],
            labels.iter().map(String::as_str),
            &[],
        ),
        rows: shown_names.iter().map(row).collect(),
    })
}

fn of_function(function: Option<&Function>) -> Cell {
    let turnaround = function.and_then(|function| function.turnaround_ms);
    let failed = function.map_or(0, |function| function.failed);
    let mut small = turnaround.map_or(String::new(), |brief| compact(brief.p99));
    if failed > 0 {
        small = format!("{small} ({failed} failed)").trim().to_string();
    }
    Cell {
        small,
        ..Cell::new(shown(turnaround.map(|brief| brief.mean), compact))
    }
}

/// The settings of each row.
pub fn runs(comparison: &Comparison) -> Table {
    let row = |(index, one): (usize, &Summary)| {
        let lag = one.arrival_lag_ms;
        let lag = lag.map_or(NONE.into(), |lag| {
            format!("{:.2} / {:.2} / {:.2}", lag.mean, lag.p99, lag.max)
        });
        let wasted = one.wasted_ms.zip(one.longest_wasted_ms);
        let wasted = wasted.map_or(NONE.into(), |(sum, longest)| {
            format!("{sum:.1} / {longest:.1}")
        });
        let text = |text: &String| {
            let text = if text.is_empty() { NONE } else { text };
            Cell::new(text.to_string())
        };
        vec![
            name(comparison, index),
            text(&one.scheduler.version),
            text(&one.scheduler.args),
            text(&one.kernel),
            text(&one.accel),
            Cell::new(one.trace.cpus.to_string()),
            Cell::new(format!("{} {}", one.trace.name, short_sha(one))),
            Cell::new(shown(
                one.switches.map(|switches| switches.voluntary),
                compact,
            )),
            Cell::new(lag),
            Cell::new(wasted),
        ]
    };
    Table {
        caption: "What each row ran with.".into(),
        columns: heads(
            &["scheduler"],
            [
                "version",
                "arguments",
                "kernel",
                "machine",
                "CPUs",
                "trace",
                "voluntary switches",
                "arrival lag mean / p99 / max, ms",
                "wasted by idle CPUs in all / at once, ms",
            ]
            .into_iter(),
            &[],
        ),
        rows: comparison.rows.iter().enumerate().map(row).collect(),
    }
}
