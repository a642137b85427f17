//! The results that are kept: a line of a CSV file for each part.

use crate::code::Code;
use crate::matrix::said::Said;
use crate::part::Part;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use sfs_jobs::rows;
use std::path::{Path, PathBuf};

/// Longest note of a part that counts no cases, in characters.
const NOTE: usize = 160;

/// What a part came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its exit status was 0.
    Passed,
    /// It was another one.
    Failed,
    /// This machine lacks something that the part needs; the note says what.
    Skipped,
}

/// The result of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The part's name.
    pub part: String,
    /// What the part came to.
    pub outcome: Outcome,
    /// Cases that passed, if it counts any.
    pub passed: Option<u32>,
    /// Cases that failed.
    pub failed: Option<u32>,
    /// Cases that were skipped.
    pub skipped: Option<u32>,
    /// The names of failed cases, or the last line of a part that counts none.
    pub note: String,
    /// The kernel's release, if a guest ran and said it.
    pub kernel: String,
    /// Real seconds.
    pub seconds: u64,
    /// The code's checksum ([`crate::code::Code`]).
    pub code: String,
    /// The commit, abbreviated.
    pub commit: String,
}

impl Row {
    /// A part's result, from what it came to and said; the caller fills in the rest.
    pub fn parse(outcome: Outcome, out: &str, errors: &str) -> Self {
        let suite = Said::parse(out, errors);
        let counts = counts(&suite.total);
        let said = [out, errors].map(|text| text.lines().rev().find(|line| !line.is_empty()));
        let last = match (outcome, said) {
            (Outcome::Passed, [Some(last), _]) | (_, [_, Some(last)]) | (_, [Some(last), None]) => {
                last
            }
            _ => "",
        };
        let note = match (counts, suite.failed.is_empty()) {
            (Some(_), _) | (None, false) => suite.failed.join(" "),
            (None, true) => last.chars().take(NOTE).collect(),
        };
        Self {
            part: String::new(),
            outcome,
            passed: counts.map(|[passed, _, _]| passed),
            failed: counts.map(|[_, failed, _]| failed),
            skipped: counts.map(|[_, _, skipped]| skipped),
            note,
            kernel: suite.release.unwrap_or_default(),
            seconds: 0,
            code: String::new(),
            commit: String::new(),
        }
    }

    /// The counts, as tests print them; none for a part that counts no cases.
    pub fn counts(&self) -> Option<[u32; 3]> {
        Some([self.passed?, self.failed?, self.skipped?])
    }

    /// What a reader of the progress wants to know.
    pub fn sentence(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
        };
        let counts = self
            .counts()
            .map_or_else(String::new, |[passed, failed, skipped]| {
                format!(": {passed} passed, {failed} failed, {skipped} skipped")
            });
        let note = match self.note.as_str() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        format!(
            "{} {outcome} after {} s{counts}{note}",
            self.part, self.seconds
        )
    }
}

/// `40 passed, 1 failed, 2 skipped` as numbers.
fn counts(line: &str) -> Option<[u32; 3]> {
    let mut parts = line.rsplit(", ");
    let mut number = |what: &str| {
        let part = parts.next()?.strip_suffix(what)?.trim_end();
        part.rsplit(' ').next()?.parse().ok()
    };
    let (skipped, failed) = (number("skipped")?, number("failed")?);
    Some([number("passed")?, failed, skipped])
}

/// All results, and their file.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    rows: Vec<Row>,
}

impl Kept {
    /// What the file has; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is no such file.
    pub fn read(path: &Path) -> Result<Self> {
        let rows = rows::read(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            rows,
        })
    }

    /// The result of the part with this name.
    pub fn row(&self, part: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.part == part)
    }

    /// The result of a part for this code.
    pub fn present(&self, part: &Part, code: &Code) -> Option<&Row> {
        self.row(&part.name)
            .filter(|row| row.code == code.id(part.about))
    }

    /// Keeps a result, in place of the part's former one. The file is replaced as a whole, so it
    /// is never half written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&mut self, row: Row) -> Result<()> {
        self.rows.retain(|other| other.part != row.part);
        self.rows.push(row);
        self.rows.sort_by(|a, b| a.part.cmp(&b.part));
        rows::write(&self.path, &self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: &str, status: i32, out: &str, errors: &str) -> Row {
        let outcome = match status {
            0 => Outcome::Passed,
            _ => Outcome::Failed,
        };
        Row {
            part: part.into(),
            code: "c".into(),
            ..Row::parse(outcome, out, errors)
        }
    }

    #[test]
    fn a_suite_has_counts_and_the_names_of_failed_cases() {
        let out = "TAP version 14\nok 1 - a # x\nnot ok 2 - b # y\n#   not ok 1 - c # z\n1 passed, 1 failed, 0 skipped\n";
        let row = row(
            "suite",
            1,
            out,
            "run: kernel 6.18.15-amd64, 4 CPUs, icount\n",
        );
        assert_eq!(row.outcome, Outcome::Failed);
        assert_eq!(row.counts(), Some([1, 1, 0]));
        assert_eq!(
            (row.note.as_str(), row.kernel.as_str()),
            ("b", "6.18.15-amd64")
        );
        assert_eq!(
            row.sentence(),
            "suite failed after 0 s: 1 passed, 1 failed, 0 skipped (b)"
        );
    }

    #[test]
    fn a_part_that_counts_nothing_has_its_last_line() {
        assert_eq!(
            row("search", 0, "one\n300 seeds, no finding\n\n", "noise\n").note,
            "300 seeds, no finding"
        );
        assert_eq!(
            row("search", 2, "one\n", "cannot read\n").note,
            "cannot read"
        );
        assert_eq!(row("search", 2, "", "").note, "");
    }

    #[test]
    fn results_are_read_as_they_were_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.csv");
        let mut kept = Kept::read(&path).unwrap();
        kept.put(row("b", 0, "2 passed, 0 failed, 1 skipped\n", ""))
            .unwrap();
        kept.put(row("a", 1, "", "it, \"broke\"\n")).unwrap();
        kept.put(row("b", 0, "3 passed, 0 failed, 0 skipped\n", ""))
            .unwrap();
        let again = Kept::read(&path).unwrap();
        assert_eq!(again.rows, kept.rows);
        assert_eq!(again.rows.len(), 2);
        assert_eq!(again.row("b").unwrap().counts(), Some([3, 0, 0]));
        std::fs::write(&path, "part,outcome\nx,perhaps\n").unwrap();
        assert!(Kept::read(&path)
            .unwrap_err()
            .to_string()
            .contains("is damaged"));
    }
}
