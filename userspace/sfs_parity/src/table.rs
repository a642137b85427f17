//! The tables in Markdown: results relative to EEVDF.

use super::column::EEVDF;
use super::results::{Line, Results};
use std::collections::{BTreeSet, HashMap};

/// A ratio below this is set in bold.
pub(crate) const GOAL: f64 = 0.95;

/// From this on a value has no decimals; below it has four digits.
const WHOLE: f64 = 1000.0;

/// The scheduler whose rows below the goal are listed first: scx_sfs without an option.
const DEFAULT: &str = "learned";

/// The tables of these results, one for each number of CPUs, and before them the rows of each that
/// are below the goal.
pub fn text(files: &[Results]) -> String {
    let groups = || files.chunk_by(|one, other| one.cpus == other.cpus);
    let below: String = groups()
        .filter_map(|columns| Table::new(columns).losses())
        .collect();
    let tables: String = groups().map(|columns| Table::new(columns).text()).collect();
    legend(&kernels(files)) + &below + &tables
}

/// The kernels of all values, in order of appearance.
fn kernels(files: &[Results]) -> String {
    let mut kernels: Vec<&str> = Vec::new();
    let lines = files.iter().flat_map(|file| &file.lines);
    for line in lines.filter(|line| !line.is_none()) {
        if !kernels.contains(&&line.kernel[..]) {
            kernels.push(&line.kernel);
        }
    }
    kernels.join(", ")
}

fn legend(kernels: &str) -> String {
    format!(
        "Under EEVDF the value, under the others what it is relative to that: more is better, always (for a time, \
         EEVDF's is divided by the other one). Below 0.95 is set in bold. The word behind each is the commit of the \
         programs that it was measured with. In virtual time, on Linux {kernels}. The geometric means are of as \
         many rows as stand below them.\n"
    )
}

/// The last lines of a column.
#[derive(Debug, Clone, Default)]
struct Sum {
    logarithms: f64,
    count: u32,
    below: u32,
}

/// One number of CPUs.
struct Table<'a> {
    columns: &'a [Results],
    /// The lines of each column by row.
    lines: Vec<HashMap<&'a str, &'a Line>>,
    /// The unit of each row.
    units: HashMap<&'a str, &'a str>,
    sums: Vec<Sum>,
    /// The reasons why rows have no value under other schedulers.
    reasons: String,
}

impl<'a> Table<'a> {
    fn new(columns: &'a [Results]) -> Self {
        let by_row = |column: &'a Results| {
            let lines = column.lines.iter();
            lines.map(|line| (&line.row[..], line)).collect()
        };
        let lines = columns.iter().flat_map(|column| &column.lines);
        let units = lines.filter(|line| !line.is_none());
        Self {
            columns,
            lines: columns.iter().map(by_row).collect(),
            units: units.map(|line| (&line.row[..], &line.unit[..])).collect(),
            sums: vec![Sum::default(); columns.len()],
            reasons: String::new(),
        }
    }

    /// Title and head.
    fn head(&self, title: &str) -> String {
        let columns = self.columns.iter();
        let schedulers: Vec<&str> = columns.map(|column| &column.scheduler[..]).collect();
        head(
            &(title.to_string() + &cpus(self.columns[0].cpus)),
            &schedulers,
        )
    }

    /// The rows below the goal under scx_sfs without an option. None if there is none.
    fn losses(mut self) -> Option<String> {
        let mut columns = self.columns.iter();
        let index = columns.position(|column| column.scheduler == DEFAULT)?;
        let lines = self.lines[index].values().copied();
        let is_below = |line: &&Line| {
            let eevdf = self.lines[0].get(&line.row[..]);
            let ratio = eevdf.and_then(|eevdf| ratio(eevdf, line, &eevdf.unit));
            ratio.is_some_and(|ratio| ratio < GOAL)
        };
        let rows: BTreeSet<&str> = lines.filter(is_below).map(|line| &line.row[..]).collect();
        if self.columns[0].scheduler != EEVDF || rows.is_empty() {
            return None;
        }
        let mut text = self.head(&format!("Below {GOAL} under `{DEFAULT}`: "));
        for row in rows {
            let eevdf = self.lines[0][row];
            text += &self.row(eevdf);
        }
        Some(text)
    }

    fn text(mut self) -> String {
        let mut text = self.head("");
        if self.columns[0].scheduler != EEVDF {
            return text + "\nNothing was measured under EEVDF.\n";
        }
        let (mut without, mut later) = (String::new(), String::new());
        let rows: BTreeSet<&str> = self
            .lines
            .iter()
            .flat_map(|of| of.keys().copied())
            .collect();
        for row in rows {
            match self.lines[0].get(row).copied() {
                None => later += &format!(" {row}"),
                Some(line) if line.number() <= 0.0 => without += &format!(" {row}"),
                Some(line) => text += &self.row(line),
            }
        }
        text += &self.below();
        for (title, listed) in [
            ("Without a value:\n", &self.reasons),
            ("Without a value under EEVDF:", &without),
            ("Not measured under EEVDF yet:", &later),
        ] {
            if !listed.is_empty() {
                text += &format!("\n{title}{listed}\n");
            }
        }
        text
    }

    /// The row that has this line under EEVDF.
    fn row(&mut self, eevdf: &Line) -> String {
        let row = &eevdf.row[..];
        let unit = self.units.get(row).copied().unwrap_or_default();
        let value = rounded(eevdf.number());
        let mut text = format!("| {row} | {value} {unit} {} |", eevdf.commit);
        for index in 1..self.columns.len() {
            let line = self.lines[index].get(row).copied();
            let cell = line.map(|line| self.cell(index, eevdf, line, unit));
            text += &format!(" {} |", cell.unwrap_or_default());
        }
        text + "\n"
    }

    fn cell(&mut self, index: usize, eevdf: &Line, line: &Line, unit: &str) -> String {
        let commit = &line.commit;
        if line.is_none() {
            let scheduler = &self.columns[index].scheduler;
            self.reasons += &format!("\n- `{}` under {scheduler}: {}", line.row, line.note);
            return format!("none {commit}");
        }
        let Some(ratio) = ratio(eevdf, line, unit) else {
            return format!("other kernel {commit}");
        };
        let sum = &mut self.sums[index];
        sum.logarithms += ratio.ln();
        sum.count += 1;
        if ratio < GOAL {
            sum.below += 1;
            return format!("**{ratio:.2}** {commit}");
        }
        format!("{ratio:.2} {commit}")
    }

    /// The last rows.
    fn below(&self) -> String {
        let sums = &self.sums[1..];
        let mean = |sum: &Sum| match sum.count {
            0 => "  |".to_string(),
            count => format!(" {:.3} |", (sum.logarithms / f64::from(count)).exp()),
        };
        let counts = |sum: &Sum| format!(" {}, {} |", sum.count, sum.below);
        let means: String = sums.iter().map(mean).collect();
        let counts: String = sums.iter().map(counts).collect();
        format!("| geometric mean | |{means}\n| rows, below 0.95 | |{counts}\n")
    }
}

/// The title of a table, and its first lines.
pub(crate) fn head(title: &str, schedulers: &[&str]) -> String {
    let names: String = schedulers.iter().map(|name| format!(" {name} |")).collect();
    let rule = "---|".repeat(schedulers.len());
    format!("\n### {title}\n\n| row |{names}\n|---|{rule}\n")
}

/// `4 CPUs`.
pub(crate) fn cpus(count: u32) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} CPU{plural}")
}

/// How a value relates to EEVDF's. More is better, always: for a time, EEVDF's is divided by
/// the other one. None if the two cannot be compared.
pub(crate) fn ratio(eevdf: &Line, line: &Line, unit: &str) -> Option<f64> {
    let (base, value) = (eevdf.number(), line.number());
    if base <= 0.0 || value <= 0.0 || eevdf.kernel != line.kernel {
        return None;
    }
    Some(match unit {
        "ops/s" => value / base,
        _ => base / value,
    })
}

/// A positive number as text: whole from 1000 on, with four significant digits below, and
/// without zeros at its end.
pub(crate) fn rounded(number: f64) -> String {
    if number >= WHOLE {
        return format!("{number:.0}");
    }
    let scientific = format!("{number:.3e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 {
        return format!("{}e-{:02}", trimmed(digits), -exponent);
    }
    let decimals = usize::try_from(3 - exponent).unwrap_or(0);
    trimmed(&format!("{number:.decimals$}")).to_string()
}

/// Without the zeros behind the point, and without the point if nothing is behind it.
fn trimmed(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_the_default_come_first() {
        let results = |scheduler: &str, values: [&str; 2]| {
            let line = |(row, value): (&str, &str)| Line {
                row: row.into(),
                value: value.into(),
                unit: "ops/s".into(),
                commit: "abc".into(),
                ..Line::default()
            };
            Results {
                scheduler: scheduler.into(),
                cpus: 4,
                machine: 0,
                lines: ["a", "b"].into_iter().zip(values).map(line).collect(),
            }
        };
        let both = [
            results("eevdf", ["100", "100"]),
            results("learned", ["96", "94"]),
        ];
        let text = text(&both);
        let (losses, all) = text.split_once("\n### 4 CPUs\n").unwrap();
        let loss =
            "### Below 0.95 under `learned`: 4 CPUs\n\n| row | eevdf | learned |\n|---|---|---|\n\
                    | b | 100 ops/s abc | **0.94** abc |\n";
        assert!(losses.ends_with(loss), "{losses}");
        assert!(all.contains("| a | 100 ops/s abc | 0.96 abc |\n"), "{all}");
    }

    #[test]
    fn values_have_four_digits() {
        for (number, text) in [
            (1_024_787.4, "1024787"),
            (2725.5, "2726"),
            (999.96, "1000"),
            (634.0, "634"),
            (45.034, "45.03"),
            (9.0, "9"),
            (0.0318, "0.0318"),
            (0.00012345, "0.0001234"),
            (0.000_048, "4.8e-05"),
        ] {
            assert_eq!(rounded(number), text);
        }
    }

    #[test]
    fn zeros_before_the_point_stay() {
        assert_eq!(trimmed("100"), "100");
        assert_eq!(trimmed("100.0"), "100");
    }
}
