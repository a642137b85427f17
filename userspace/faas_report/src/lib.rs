//! Compares the summaries of several runs: a table for the terminal, a page
//! with tables and charts, and the comparison as text. Owns the look of every
//! chart of the workspace ([`style`], [`svg`], [`charts`]). The same summaries
//! give the same bytes: nothing depends on the time, the host or its fonts.

pub mod charts;
pub mod files;
pub mod page;
pub mod style;
pub mod svg;
pub mod table;
pub mod words;

use anyhow::{bail, Context, Result};
use faas_data::output::{note, print, Output};
use faas_data::summary::Status;
use faas_data::summary::{json, Summary};
use std::path::{Path, PathBuf};

/// Columns of text on the terminal.
const COLUMNS: usize = 80;

/// With more rows than this, only the page compares each row with the baseline
/// as text; the terminal has the table and the paragraph.
const SAID_ON_TERMINAL: usize = 4;

/// The summaries of several runs and the baseline of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The rows, in the given order.
    pub rows: Vec<Summary>,
    /// Index of the baseline, if it exists and has results.
    pub baseline: Option<usize>,
}

/// A property in which rows should not differ.
struct Aspect {
    name: &'static str,
    of: fn(&Summary) -> String,
    /// Whether it applies to simulated rows.
    simulated: bool,
}

const ASPECTS: [Aspect; 5] = [
    Aspect {
        name: "trace",
        of: |row| format!("{} {}", row.trace.name, short_sha(row)),
        simulated: true,
    },
    Aspect {
        name: "number of CPUs",
        of: |row| row.trace.cpus.to_string(),
        simulated: true,
    },
    Aspect {
        name: "kernel",
        of: |row| row.kernel.clone(),
        simulated: false,
    },
    Aspect {
        name: "sandbox",
        of: |row| {
            let sandbox = row.sandbox.as_ref();
            sandbox.map_or("process".to_string(), |one| one.kind.clone())
        },
        simulated: false,
    },
    Aspect {
        name: "kind of machine",
        of: |row| row.accel.clone(),
        simulated: false,
    },
];

impl Comparison {
    /// Compares `rows` with the first one called `baseline`.
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

    /// Whether a row is of a real scheduler, loaded from the first arrival to
    /// the last completion, without failures, and in the same setting as the
    /// baseline. Only such rows can be the best in a column.
    pub fn is_live(&self, index: usize) -> bool {
        let row = &self.rows[index];
        let there = matches!(row.scheduler.status, Status::Ok | Status::BadExit);
        let measured = row.turnaround_ms.is_some() && row.failed == 0;
        there && measured && !row.is_simulated() && self.differs(index).is_empty()
    }

    /// The aspects, other than the scheduler, in which a row differs from the
    /// baseline (or from the first row).
    pub fn differs(&self, index: usize) -> Vec<&'static str> {
        let row = &self.rows[index];
        let aspects = ASPECTS.iter().filter(|aspect| {
            let other = self.reference(aspect);
            aspect.has(row) && other.is_some_and(|other| (aspect.of)(row) != (aspect.of)(other))
        });
        aspects.map(|aspect| aspect.name).collect()
    }

    /// The row that the others should agree with in `aspect`.
    fn reference(&self, aspect: &Aspect) -> Option<&Summary> {
        let base = self.base().filter(|base| aspect.has(base));
        base.or_else(|| self.rows.iter().find(|row| aspect.has(row)))
    }

    /// The aspects, other than the scheduler, in which the rows differ. If
    /// there are any, the comparison says little about schedulers. Simulated
    /// rows have no kernel and no machine.
    pub fn mismatch(&self) -> Option<String> {
        let what: Vec<String> = ASPECTS
            .iter()
            .filter_map(|aspect| self.values(aspect))
            .collect();
        let what = what.join("; ");
        (!what.is_empty()).then(|| format!("The rows differ in more than the scheduler: {what}."))
    }

    /// The values of `aspect` and their rows, if there is more than one value.
    fn values(&self, aspect: &Aspect) -> Option<String> {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for row in self.rows.iter().filter(|row| aspect.has(row)) {
            let value = (aspect.of)(row);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(label(row)),
                None => values.push((value, vec![label(row)])),
            }
        }
        let one =
            |(value, names): &(String, Vec<String>)| format!("{value} ({})", names.join(", "));
        let all: Vec<String> = values.iter().map(one).collect();
        (all.len() > 1).then(|| format!("{}: {}", aspect.name, all.join(", ")))
    }
}

impl Aspect {
    fn has(&self, row: &Summary) -> bool {
        self.simulated || !row.is_simulated()
    }
}

/// A row's label: its scheduler's name, marked if simulated.
pub fn label(row: &Summary) -> String {
    let name = &row.scheduler.name;
    if row.is_simulated() {
        format!("{name} (simulated)")
    } else {
        name.clone()
    }
}

/// The first digits of the trace's SHA-256.
fn short_sha(row: &Summary) -> &str {
    let sha256 = &row.trace.sha256;
    sha256.get(..12).unwrap_or(sha256)
}

/// What to write, and where.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The summaries.
    pub summaries: &'a [PathBuf],
    /// Folder for `summary.json` and `report.html`; default: that of the first
    /// summary.
    pub out: Option<&'a Path>,
    /// Name of the baseline row.
    pub baseline: &'a str,
    /// Folder for the pictures as SVG files.
    pub svg: Option<&'a Path>,
    /// Whether the list of summaries is printed as JSON, instead of the comparison as text.
    pub json: bool,
}

/// Reads the summaries, writes `summary.json`, `report.html` and the requested
/// pictures, and prints the comparison.
///
/// # Errors
/// If a summary cannot be read, none is given, or a file cannot be written.
pub fn write(request: &Request) -> Result<()> {
    let first = request.summaries.first().and_then(|first| first.parent());
    let out = match (request.out, first) {
        (Some(out), _) => out.to_path_buf(),
        (None, Some(folder)) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let cannot = || format!("cannot create the folder {}", out.display());
    std::fs::create_dir_all(&out).with_context(cannot)?;
    let list = out.join("summary.json");
    let rows = read_all(request.summaries, &list)?;
    let (list, page) = (
        Output::create(&list)?,
        Output::create(&out.join("report.html"))?,
    );
    let comparison = Comparison::new(rows, request.baseline);
    let all = json::to_text(&comparison.rows)?;
    list.commit(all.as_bytes())?;
    page.commit(page::html(&comparison).as_bytes())?;
    if let Some(folder) = request.svg {
        files::write_svg(&comparison, folder)?;
    }
    if comparison.baseline.is_none() {
        note(&format!(
            "note: no row called {} has results, so there is nothing to compare with",
            request.baseline
        ));
    }
    let said = if request.json { all } else { text(&comparison) };
    print(said.as_bytes())
}

/// Reads all but `own`, the list that an earlier report wrote to the same
/// folder.
fn read_all(summaries: &[PathBuf], own: &Path) -> Result<Vec<Summary>> {
    let same = |path: &Path| match (path.canonicalize(), own.canonicalize()) {
        (Ok(path), Ok(own)) => path == own,
        _ => false,
    };
    let paths = summaries.iter().filter(|path| !same(path));
    let rows: Vec<Summary> = paths.map(|path| json::read(path)).collect::<Result<_>>()?;
    if rows.is_empty() {
        bail!("there is no summary to report on except {}", own.display());
    }
    Ok(rows)
}

/// The text for a terminal.
fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n", table::terminal(comparison));
    let mut paragraphs = vec![words::reading(comparison).join(" ")];
    let each = words::comparisons(comparison);
    if each.len() <= SAID_ON_TERMINAL {
        paragraphs.extend(each);
    }
    let warnings = words::warnings(comparison);
    paragraphs.extend(warnings.iter().map(|warning| format!("! {warning}")));
    for paragraph in paragraphs.iter().filter(|text| !text.is_empty()) {
        text.push_str(&format!("{}\n", words::wrap(paragraph, COLUMNS)));
    }
    text
}

#[cfg(test)]
mod tests;
