//! Compares schedulers over several seeds. The seed is the unit: all schedulers replay the
//! trace of a seed, and a ratio of two of their figures is one observation.
//!
//! | module | content |
//! |---|---|
//! | [`list`] | the file that names the runs of a series |
//! | [`figure`] | the figures of one run |
//! | [`runs`] | reads the runs, and what speaks against each |
//! | [`split`] | which invocations are short: three answers |
//! | [`student`] | Student's t distribution |
//! | [`estimate`] | geometric mean of ratios, its interval, the correction for many rows |
//! | [`compare`] | the rows of the report |
//! | [`tables`] | the report for the terminal and as Markdown |
//! | [`digits`] | the same as CSV |
//!
//! `docs/statistics.md` explains the figures with an example. The same files give the same
//! bytes.

#![forbid(unsafe_code)]

pub mod compare;
pub mod digits;
pub mod estimate;
pub mod figure;
pub mod list;
pub mod runs;
pub mod split;
pub mod student;
pub mod tables;

#[cfg(test)]
mod testing;

use anyhow::Result;
use compare::Comparison;
use faas_data::output::{print, Output};
use list::Series;
use std::path::Path;

/// Reads the series that `list` names, writes `seeds.md`, `seeds.csv` and `runs.csv` beside
/// it, and prints the table, or with `json` the rows of `seeds.csv`. With `trim` it has all figures also without that share, in per
/// cent, of the first and of the last invocations (1 to 49).
///
/// # Errors
/// If a file cannot be read or written, or the runs cannot be compared.
pub fn report(list: &Path, trim: Option<u8>, json: bool) -> Result<()> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let series = Series::read(list)?;
    let [page, table, runs] =
        ["seeds.md", "seeds.csv", "runs.csv"].map(|name| Output::create(&folder.join(name)));
    let (page, table, runs) = (page?, table?, runs?);
    let all = runs::read(&series, folder, trim)?;
    let comparison = Comparison::new(&series, &all);
    page.commit(tables::markdown(&comparison).as_bytes())?;
    let ratios = digits::ratios(&comparison)?;
    table.commit(&ratios)?;
    runs.commit(&digits::runs(&all)?)?;
    let said = if json {
        digits::to_json(&ratios)?
    } else {
        tables::terminal(&comparison)
    };
    print(said.as_bytes())
}
