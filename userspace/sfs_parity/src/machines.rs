//! Rows that several machines have measured, each a little different: how far a figure is luck.

use super::column::EEVDF;
use super::results::{Line, Results};
use super::table::{cpus, head, ratio, rounded, GOAL};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer machines say nothing about how a row varies.
const LEAST: usize = 2;

/// The tables of rows that several machines have measured, one for each number of CPUs that has any.
/// `files` are in the order of [`super::results::files`].
pub fn text(files: &[Results]) -> String {
    let groups = files.chunk_by(|one, other| one.cpus == other.cpus);
    let tables: String = groups
        .filter_map(|columns| Rows::new(columns).text())
        .collect();
    match tables.is_empty() {
        true => tables,
        false => LEGEND.to_string() + &tables,
    }
}

const LEGEND: &str = "\n## On several machines\n\nA row may vary from one machine to the next that differs by \
    little (`vm/run --perturb`). Here are the rows that several have measured (`MACHINES=`). Under EEVDF: its least \
    and its greatest value. Under the others: the geometric mean of the values relative to EEVDF in the same \
    machine, the least and the greatest of them, and how many machines they are of.\n";

/// The values of a row under a scheduler, by machine.
type Values<'a> = BTreeMap<u32, &'a Line>;

/// The rows of one number of CPUs.
struct Rows<'a> {
    cpus: u32,
    schedulers: Vec<&'a str>,
    /// By row and scheduler.
    values: BTreeMap<(&'a str, &'a str), Values<'a>>,
}

impl<'a> Rows<'a> {
    fn new(columns: &'a [Results]) -> Self {
        let mut schedulers: Vec<&str> = columns.iter().map(|of| &of.scheduler[..]).collect();
        schedulers.dedup();
        let mut values: BTreeMap<(&str, &str), Values> = BTreeMap::new();
        for column in columns {
            for line in column.lines.iter().filter(|line| line.number() > 0.0) {
                let of = values.entry((&line.row, &column.scheduler)).or_default();
                of.insert(column.machine, line);
            }
        }
        Self {
            cpus: columns[0].cpus,
            schedulers,
            values,
        }
    }

    /// None if no row was measured on several machines, or nothing under EEVDF, which comes first.
    fn text(&self) -> Option<String> {
        let (base, others) = self.schedulers.split_first()?;
        if *base != EEVDF {
            return None;
        }
        let rows: BTreeSet<&str> = self.values.keys().map(|(row, _)| *row).collect();
        let lines: String = rows
            .into_iter()
            .filter_map(|row| self.line(row, base, others))
            .collect();
        let title = cpus(self.cpus) + ", several machines";
        (!lines.is_empty()).then(|| head(&title, &self.schedulers) + &lines)
    }

    fn line(&self, row: &str, base: &str, others: &[&str]) -> Option<String> {
        let base = self.values.get(&(row, base))?;
        let cells: Vec<String> = others
            .iter()
            .map(|name| self.cell(row, name, base))
            .collect();
        cells.iter().any(|cell| !cell.is_empty()).then(|| {
            let (least, greatest) = range(base.values().map(|line| line.number()));
            let unit = base.values().next().map_or("", |line| &line.unit);
            let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
            format!(
                "| {row} | {} to {} {unit} |{cells}\n",
                rounded(least),
                rounded(greatest)
            )
        })
    }

    /// What the machines say that have measured the row under this scheduler and under EEVDF too.
    fn cell(&self, row: &str, scheduler: &str, base: &Values) -> String {
        let Some(values) = self.values.get(&(row, scheduler)) else {
            return String::new();
        };
        let pairs = values
            .iter()
            .filter_map(|(machine, line)| Some((base.get(machine)?, line)));
        let ratios: Vec<f64> = pairs
            .filter_map(|(base, line)| ratio(base, line, &base.unit))
            .collect();
        if ratios.len() < LEAST {
            return String::new();
        }
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        let mean = (logarithms / ratios.len() as f64).exp();
        let (least, greatest) = range(ratios.iter().copied());
        let bold = if mean < GOAL { "**" } else { "" };
        format!(
            "{bold}{mean:.2}{bold} ({least:.2} to {greatest:.2}; {})",
            ratios.len()
        )
    }
}

/// The least and the greatest of some numbers.
fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, greatest), number| (least.min(number), greatest.max(number)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(scheduler: &str, machine: u32, values: &[(&str, &str, &str)]) -> Results {
        let line = |(row, value, unit): &(&str, &str, &str)| Line {
            row: row.to_string(),
            value: value.to_string(),
            unit: unit.to_string(),
            kernel: "6.18".into(),
            ..Line::default()
        };
        Results {
            scheduler: scheduler.into(),
            cpus: 4,
            machine,
            lines: values.iter().map(line).collect(),
        }
    }

    #[test]
    fn each_machine_is_compared_with_itself() {
        let files = [
            results(
                "eevdf",
                0,
                &[("a", "100", "ops/s"), ("b", "4", "us"), ("c", "1", "us")],
            ),
            results(
                "eevdf",
                1,
                &[("a", "50", "ops/s"), ("b", "2", "us"), ("c", "1", "us")],
            ),
            results("eevdf", 2, &[("a", "70", "ops/s")]),
            results(
                "learned",
                0,
                &[("a", "50", "ops/s"), ("b", "4", "us"), ("c", "1", "us")],
            ),
            results(
                "learned",
                1,
                &[("a", "100", "ops/s"), ("b", "4", "us"), ("c", "-", "-")],
            ),
        ];
        let text = text(&files);
        assert!(text.contains("### 4 CPUs, several machines\n"), "{text}");
        assert!(
            text.contains("| a | 50 to 100 ops/s | 1.00 (0.50 to 2.00; 2) |\n"),
            "{text}"
        );
        assert!(
            text.contains("| b | 2 to 4 us | **0.71** (0.50 to 1.00; 2) |\n"),
            "{text}"
        );
        assert!(!text.contains("| c |"), "{text}");
    }

    #[test]
    fn nothing_is_relative_to_another_scheduler() {
        let values = [("a", "100", "ops/s")];
        let files =
            ["learned", "fair"].map(|name| [0, 1].map(|machine| results(name, machine, &values)));
        assert_eq!(text(files.as_flattened()), "");
    }

    #[test]
    fn one_machine_has_no_table() {
        let files = [
            results("eevdf", 0, &[("a", "100", "ops/s")]),
            results("learned", 0, &[("a", "50", "ops/s")]),
        ];
        assert_eq!(text(&files), "");
    }
}
