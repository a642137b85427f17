//! The tables, for the terminal and for the page.

mod format;
mod numbers;
mod terminal;

use super::{label, Comparison};
use faas_data::summary::Status;
use faas_data::summary::Summary;
use format::{compact, per_cent, shown};

pub use numbers::{functions, groups, percentiles, runs};
pub use terminal::terminal;

/// A table of the page. The first column names the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The column headers.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The number.
    pub text: String,
    /// Small print beside the number.
    pub small: String,
    /// Whether it is the best of its column.
    pub best: bool,
    /// Index of the row in the comparison, if the cell is its name.
    pub row: Option<usize>,
}

impl Cell {
    fn new(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// A column of the main table.
struct Column {
    head: &'static str,
    value: fn(&Summary) -> Option<f64>,
    show: fn(f64) -> String,
    /// Whether the ratio to the baseline is shown beside it.
    ratio: bool,
    /// Whether more is better; `None` if neither is.
    more_is_better: Option<bool>,
    /// Whether the column is left out if no row has a value.
    optional: bool,
}

const MAIN: [Column; 9] = [
    Column {
        head: "mean turnaround, ms",
        value: |row| Some(row.turnaround_ms?.mean),
        show: compact,
        ratio: true,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "short, ms",
        value: |row| Some(row.short.turnaround_ms?.mean),
        show: compact,
        ratio: true,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "long, ms",
        value: |row| Some(row.long.turnaround_ms?.mean),
        show: compact,
        ratio: true,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "slowdown p99",
        value: |row| Some(row.slowdown?.p99),
        show: compact,
        ratio: false,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "RTE >= 0.95",
        value: |row| Some(row.rte?.at_least_095),
        show: per_cent,
        ratio: false,
        more_is_better: Some(true),
        optional: false,
    },
    Column {
        head: "involuntary switches",
        value: |row| Some(row.switches?.involuntary),
        show: compact,
        ratio: false,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "CPU / service",
        value: |row| row.cpu_over_service,
        show: |value| format!("{value:.3}"),
        ratio: false,
        more_is_better: Some(false),
        optional: false,
    },
    Column {
        head: "CPU / CPU alone",
        value: |row| Some(row.fixed_work.as_ref()?.all.cpu_over_alone),
        show: |value| format!("{value:.3}"),
        ratio: true,
        more_is_better: Some(false),
        optional: true,
    },
    Column {
        head: "makespan, s",
        value: |row| row.makespan_ms,
        show: |ms| format!("{:.2}", ms / 1e3),
        ratio: false,
        more_is_better: None,
        optional: false,
    },
];

/// The main table.
pub fn main(comparison: &Comparison) -> Table {
    let base = comparison.base();
    let columns = columns(comparison);
    let best: Vec<Option<f64>> = columns.iter().map(|one| best(comparison, one)).collect();
    let row = |(index, one): (usize, &Summary)| {
        let base = base.filter(|_| comparison.baseline != Some(index));
        let mut cells = vec![name(comparison, index)];
        for (column, best) in columns.iter().zip(&best) {
            let value = (column.value)(one);
            let ratio = base.filter(|_| column.ratio).and_then(column.value);
            cells.push(Cell {
                text: shown(value, column.show),
                small: ratio_of(value, ratio).map_or(String::new(), |ratio| format!("{ratio}x")),
                best: comparison.is_live(index) && value.is_some() && value == *best,
                row: None,
            });
        }
        cells.push(Cell::new(one.failed.to_string()));
        cells
    };
    let beside = base.map_or(String::new(), |base| {
        format!(" In small print: ratio to {}.", label(base))
    });
    Table {
        caption: format!(
            "Means and shares of all invocations.{beside} Bold: the best of the real schedulers that ran to \
             the end, without failures, in the same setting."
        ),
        columns: heads(
            &["scheduler"],
            columns.iter().map(|column| column.head),
            &["failed"],
        ),
        rows: comparison.rows.iter().enumerate().map(row).collect(),
    }
}

/// The columns that these rows have.
fn columns(comparison: &Comparison) -> Vec<&'static Column> {
    let has_any = |column: &&Column| {
        let mut rows = comparison.rows.iter();
        !column.optional || rows.any(|row| (column.value)(row).is_some())
    };
    MAIN.iter().filter(has_any).collect()
}

fn heads<'a>(
    before: &[&str],
    middle: impl Iterator<Item = &'a str>,
    after: &[&str],
) -> Vec<String> {
    let text = |head: &&str| (*head).to_string();
    let mut all: Vec<String> = before.iter().map(text).collect();
    all.extend(middle.map(str::to_string));
    all.extend(after.iter().map(text));
    all
}

/// The best value of a column among complete live rows; `None` if there is no
/// choice.
fn best(comparison: &Comparison, column: &Column) -> Option<f64> {
    let more = column.more_is_better?;
    let live = comparison.rows.iter().enumerate();
    let live = live.filter(|(index, _)| comparison.is_live(*index));
    let values: Vec<f64> = live.filter_map(|(_, row)| (column.value)(row)).collect();
    let better = |one: f64, other: f64| if more { one.max(other) } else { one.min(other) };
    (values.len() > 1).then(|| values.into_iter().reduce(better))?
}

fn ratio_of(own: Option<f64>, base: Option<f64>) -> Option<String> {
    let (own, base) = (own?, base?);
    (base > 0.0).then(|| format!("{:.2}", own / base))
}

/// The table's first cell: the row's name and its marks.
fn name(comparison: &Comparison, index: usize) -> Cell {
    Cell {
        text: label(&comparison.rows[index]),
        small: odd(comparison, index).join(", "),
        best: false,
        row: Some(index),
    }
}

/// The marks of a row: unusual properties, each in a few words.
fn odd(comparison: &Comparison, index: usize) -> Vec<String> {
    let row = &comparison.rows[index];
    let mut odd: Vec<String> = match row.scheduler.status {
        Status::Ok => Vec::new(),
        Status::NotLoaded => vec!["did not load".into()],
        Status::Ejected => vec!["ejected".into()],
        Status::Reloaded => vec!["reloaded".into()],
        Status::BadExit => vec!["bad exit".into()],
        Status::Lost => vec!["lost".into()],
    };
    if row.is_late() {
        odd.push("late".into());
    }
    let differs = comparison.differs(index);
    odd.extend(differs.iter().map(|what| format!("other {what}")));
    odd
}
