//! Results: one line for each workload, seed and scheduler, in a file that is kept in git.

use crate::figures::Figures;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use sfs_jobs::rows;
use std::path::{Path, PathBuf};

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The workload's name.
    pub workload: String,
    /// The seed of its trace.
    pub seed: u64,
    /// The column.
    pub scheduler: String,
    /// The figures; empty if the run is no clean measurement.
    pub mean_slowdown: Option<f64>,
    /// The same.
    pub p99_slowdown: Option<f64>,
    /// The same, ms.
    pub mean_ms: Option<f64>,
    /// The same, ms.
    pub short_ms: Option<f64>,
    /// The same, ms.
    pub long_ms: Option<f64>,
    /// The same, ms.
    pub p999_ms: Option<f64>,
    /// `ok`, or what became of the scheduler, with the reason.
    pub status: String,
    /// The guest's kernel.
    pub kernel: String,
    /// The machine, as for `vm/run --perturb`; empty: the usual one.
    #[serde(default)]
    pub machine: Option<u16>,
    /// The commit that the programs were built from.
    pub commit: String,
    /// A digest of the programs, and of the workload's definition.
    pub programs: String,
}

impl Line {
    /// Whether the machine was lost: it is no result, and is tried again.
    pub fn is_lost(&self) -> bool {
        self.status.starts_with("lost")
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        Figures {
            mean_slowdown: self.mean_slowdown,
            p99_slowdown: self.p99_slowdown,
            mean_ms: self.mean_ms,
            short_ms: self.short_ms,
            long_ms: self.long_ms,
            p999_ms: self.p999_ms,
        }
    }

    /// The same line with these figures.
    #[must_use]
    pub fn with(self, figures: Figures) -> Self {
        Self {
            mean_slowdown: figures.mean_slowdown,
            p99_slowdown: figures.p99_slowdown,
            mean_ms: figures.mean_ms,
            short_ms: figures.short_ms,
            long_ms: figures.long_ms,
            p999_ms: figures.p999_ms,
            ..self
        }
    }

    fn key(&self) -> (&str, u64, &str) {
        (&self.workload, self.seed, &self.scheduler)
    }
}

/// All results, and their file.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    lines: Vec<Line>,
}

impl Results {
    /// What the file has; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is no such file.
    pub fn read(path: &Path) -> Result<Self> {
        let lines = rows::read(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            lines,
        })
    }

    /// All of them.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The result of this run.
    pub fn line(&self, workload: &str, seed: u64, scheduler: &str) -> Option<&Line> {
        let key = (workload, seed, scheduler);
        self.lines.iter().find(|line| line.key() == key)
    }

    /// Keeps a result, in place of a former one of the same run. The file is replaced as a whole, so
    /// it is never half written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&mut self, line: Line) -> Result<()> {
        self.lines.retain(|other| other.key() != line.key());
        self.lines.push(line);
        self.lines.sort_by(|a, b| a.key().cmp(&b.key()));
        rows::write(&self.path, &self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workload: &str, seed: u64, mean: Option<f64>) -> Line {
        Line {
            workload: workload.into(),
            seed,
            scheduler: "eevdf".into(),
            mean_slowdown: mean,
            p99_slowdown: None,
            mean_ms: None,
            short_ms: None,
            long_ms: None,
            p999_ms: None,
            status: "ok".into(),
            kernel: "6.18".into(),
            machine: None,
            commit: "abc".into(),
            programs: "123".into(),
        }
    }

    #[test]
    fn a_result_takes_the_place_of_a_former_one_and_survives_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/league.csv");
        let mut results = Results::read(&path).unwrap();
        assert!(results.lines().is_empty());
        results.put(line("b", 1, Some(2.5))).unwrap();
        results.put(line("a", 2, None)).unwrap();
        results.put(line("b", 1, Some(3.5))).unwrap();
        let read = Results::read(&path).unwrap();
        assert_eq!(read.lines(), [line("a", 2, None), line("b", 1, Some(3.5))]);
        assert_eq!(read.line("b", 1, "eevdf"), Some(&line("b", 1, Some(3.5))));
        assert_eq!(read.line("b", 2, "eevdf"), None);
        let lost = |status: &str| {
            Line {
                status: status.into(),
                ..line("a", 1, None)
            }
            .is_lost()
        };
        assert!(lost("lost: no kernel") && !lost("ok") && !lost("ejected: gone"));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("league.csv");
        std::fs::write(&path, "workload,seed\nx,y\n").unwrap();
        let error = Results::read(&path).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("league.csv is damaged; take it out of git anew"),
            "{error}"
        );
    }
}
