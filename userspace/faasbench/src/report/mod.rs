//! Comparing several runs: a table on the terminal, the same with plots in a
//! page, and what it means in words.
//!
//! Nothing here depends on the time, the host or its fonts: the same summaries
//! make the same bytes.

pub mod charts;
pub mod page;
pub mod svg;
pub mod table;
pub mod words;

use crate::output::{note, print, Output};
use crate::summary::{json, Summary};
use anyhow::{bail, Context, Result};
use std::path::{Path, PathBuf};

/// The summaries of several runs and the one that the others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The rows, in the order given.
    pub rows: Vec<Summary>,
    /// Index of the baseline, if there is one that measured something.
    pub baseline: Option<usize>,
}

impl Comparison {
    /// Compares `rows` with the first that is called `baseline`.
    pub fn new(rows: Vec<Summary>, baseline: &str) -> Self {
        let is_baseline =
            |row: &Summary| row.scheduler.name == baseline && row.turnaround_ms.is_some();
        let baseline = rows.iter().position(is_baseline);
        Self { rows, baseline }
    }

    /// The baseline's summary.
    pub fn base(&self) -> Option<&Summary> {
        self.baseline.map(|index| &self.rows[index])
    }

    /// In what the rows differ besides the scheduler, if they do: then the
    /// comparison says little about schedulers. Simulated rows have no kernel
    /// and no machine to differ in.
    pub fn mismatch(&self) -> Option<String> {
        let differ = |rows: &[&Summary], of: fn(&Summary) -> String| {
            rows.windows(2).any(|two| of(two[0]) != of(two[1]))
        };
        let all: Vec<&Summary> = self.rows.iter().collect();
        let live: Vec<&Summary> = self.rows.iter().filter(|row| !is_simulated(row)).collect();
        let mut what = Vec::new();
        if differ(&all, |row| row.trace.sha256.clone()) {
            what.push("trace");
        }
        if differ(&all, |row| row.trace.cpus.to_string()) {
            what.push("number of CPUs");
        }
        if differ(&live, |row| row.kernel.clone()) {
            what.push("kernel");
        }
        if differ(&live, |row| row.accel.clone()) {
            what.push("kind of machine");
        }
        let what = what.join(", ");
        (!what.is_empty()).then(|| format!("The rows differ in more than the scheduler: {what}."))
    }
}

/// Whether the row is of a simulation: no kernel, and nothing costs anything.
pub fn is_simulated(row: &Summary) -> bool {
    row.accel == "simulated"
}

/// What a row is called: its scheduler's name, marked if it is simulated.
pub fn label(row: &Summary) -> String {
    let name = &row.scheduler.name;
    if is_simulated(row) {
        format!("{name} (simulated)")
    } else {
        name.clone()
    }
}

/// Reads `summaries`, writes `summary.json` and `report.html` to `out` (by
/// default the folder of the first one), and prints the comparison.
///
/// # Errors
/// If a summary cannot be read, none is given, or a file cannot be written.
pub fn write(summaries: &[PathBuf], out: Option<&Path>, baseline: &str) -> Result<()> {
    let out = match (out, summaries.first().and_then(|first| first.parent())) {
        (Some(out), _) => out.to_path_buf(),
        (None, Some(folder)) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let cannot = || format!("cannot make the folder {}", out.display());
    std::fs::create_dir_all(&out).with_context(cannot)?;
    let list = out.join("summary.json");
    let rows = read_all(summaries, &list)?;
    let (list, page) = (
        Output::create(&list)?,
        Output::create(&out.join("report.html"))?,
    );
    let comparison = Comparison::new(rows, baseline);
    list.commit(json::to_text(&comparison.rows)?.as_bytes())?;
    page.commit(page::html(&comparison).as_bytes())?;
    if comparison.baseline.is_none() {
        note(&format!(
            "note: no row called {baseline} has results, so there is nothing to compare with"
        ));
    }
    print(text(&comparison).as_bytes())
}

/// Reads all but `own`, the list that an earlier report wrote beside them.
fn read_all(summaries: &[PathBuf], own: &Path) -> Result<Vec<Summary>> {
    let same = |path: &Path| match (path.canonicalize(), own.canonicalize()) {
        (Ok(path), Ok(own)) => path == own,
        _ => false,
    };
    let paths = summaries.iter().filter(|path| !same(path));
    let rows: Vec<Summary> = paths.map(|path| json::read(path)).collect::<Result<_>>()?;
    if rows.is_empty() {
        bail!("there is no summary to report on besides {}", own.display());
    }
    Ok(rows)
}

/// What a terminal shows.
fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n", table::terminal(comparison));
    for sentence in words::sentences(comparison) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
