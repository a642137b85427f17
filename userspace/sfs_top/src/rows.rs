//! The tables: functions, sandboxes, counters.

use sfs_statistics::FunctionReport;
use sfs_text::word;

use crate::sample::Sandbox;
use crate::table::{Cell, Column, Rows, Value};
use crate::words::{count, ms, percent, UNKNOWN};

/// One counter of the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// Its growth per second.
    pub rate: f64,
    /// Its growth since load.
    pub total: u64,
    /// What it counts.
    pub meaning: String,
}

const fn column(title: &'static str, width: u16, large_first: bool, left_out: u8) -> Column {
    Column {
        title,
        width,
        large_first,
        left_out,
    }
}

fn number(value: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
    match value {
        Some(number) => (text(number), Value::Number(number)),
        None => (UNKNOWN.to_owned(), Value::Unknown),
    }
}

fn name(text: &str) -> Cell {
    (word(text), Value::Text(text.to_owned()))
}

impl Rows for FunctionReport {
    const COLUMNS: &'static [Column] = &[
        column("FUNCTION", 0, false, 0),
        column("WORK", 6, true, 1),
        column("DONE", 7, true, 3),
        column("P50 ms", 8, true, 5),
        column("P90 ms", 8, true, 6),
        column("P99 ms", 8, true, 2),
        column("RANK", 4, false, 4),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            name(&self.function),
            number(Some(self.work_share), percent),
            number(Some(f64::from(self.completions)), count),
            number(self.p50_ms, ms),
            number(self.p90_ms, ms),
            number(self.p99_ms, ms),
            number(self.rank.map(f64::from), count),
        ]
    }
}

impl Rows for Sandbox {
    const COLUMNS: &'static [Column] = &[
        column("SANDBOX (CGROUP)", 0, false, 0),
        column("CPU", 6, true, 1),
        column("SHARE", 6, true, 3),
        column("WAIT", 6, true, 2),
        column("TASKS", 6, true, 4),
        column("WEIGHT", 6, true, 5),
        column("QUOTA", 6, true, 6),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            name(&self.cgroup),
            number(self.cpus_used, |cpus| format!("{:.0}%", 100.0 * cpus)),
            number(self.share, percent),
            number(self.pressure_share, percent),
            number(self.tasks.map(|tasks| tasks as f64), count),
            number(self.weight.map(|weight| weight as f64), count),
            number(self.quota_cpus, |cpus| format!("{:.0}%", 100.0 * cpus)),
        ]
    }
}

impl Rows for Counter {
    const COLUMNS: &'static [Column] = &[
        column("COUNTER", 22, false, 0),
        column("PER s", 7, true, 1),
        column("SINCE LOAD", 10, true, 2),
        column("", 0, false, 3),
    ];

    fn cells(&self) -> Vec<Cell> {
        vec![
            name(self.name),
            number(Some(self.rate), count),
            (self.total.to_string(), Value::Number(self.total as f64)),
            (self.meaning.clone(), Value::Text(self.meaning.clone())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_cell_for_each_column() {
        let function = FunctionReport {
            key: 0,
            function: "a b".into(),
            completions: 12_345,
            p50_ms: Some(0.5),
            p90_ms: None,
            p99_ms: Some(250.0),
            rank: Some(3),
            work_share: 0.25,
        };
        let texts =
            |cells: Vec<Cell>| -> Vec<String> { cells.into_iter().map(|it| it.0).collect() };
        assert_eq!(
            texts(function.cells()),
            [r"a\u{20}b", "25.0%", "12.3k", "0.50", "-", "250", "3"]
        );
        let sandbox = Sandbox {
            cgroup: "f/a".into(),
            cpus_used: Some(1.5),
            weight: Some(100),
            ..Sandbox::default()
        };
        assert_eq!(
            texts(sandbox.cells()),
            ["f/a", "150%", "-", "-", "-", "100", "-"]
        );
        assert_eq!(sandbox.cells().len(), Sandbox::COLUMNS.len());
        assert_eq!(function.cells().len(), FunctionReport::COLUMNS.len());
        let counter = Counter {
            name: "arrivals",
            rate: 2.5,
            total: 100_000,
            meaning: "Invocations begun".into(),
        };
        assert_eq!(
            texts(counter.cells()),
            ["arrivals", "2.5", "100000", "Invocations begun"]
        );
    }
}
