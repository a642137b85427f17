//! Results: one line for each point and scheduler, in a file that is kept in git.

use crate::points::Point;
use anyhow::Result;
use faas_data::summary::{Status, Summary};
use serde::{Deserialize, Serialize};
use sfs_jobs::rows;
use std::path::{Path, PathBuf};

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The machine's name.
    pub machine: String,
    /// An instruction takes 2 to this power ns.
    pub shift: u32,
    /// The refill after a switch, us.
    pub refill_us: u32,
    /// The scheduler, with a label if it has options.
    pub scheduler: String,
    /// Mean turnaround, ms; empty if the run is no clean measurement.
    pub mean_ms: Option<f64>,
    /// Mean slowdown.
    pub mean_slowdown: Option<f64>,
    /// Mean turnaround of the short invocations, ms.
    pub short_ms: Option<f64>,
    /// Mean turnaround of the long ones, ms.
    pub long_ms: Option<f64>,
    /// Mean of CPU time / service time.
    pub cpu_over_service: Option<f64>,
    /// Switches for which demand grew, of all invocations.
    pub refills: Option<u64>,
    /// Of these, switches to another CPU, cache or node.
    pub moves: Option<u64>,
    /// The CPU time added, ms.
    pub refill_ms: Option<f64>,
    /// `ok`, or what became of the scheduler.
    pub status: String,
    /// The guest's kernel.
    pub kernel: String,
    /// The commit of the programs.
    pub commit: String,
    /// A digest of the programs, the machine and the trace.
    pub programs: String,
}

impl Line {
    /// The result of a run.
    pub fn of(point: &Point, scheduler: &str, summary: &Summary) -> Self {
        let is_whole = summary.scheduler.status == Status::Ok && summary.failed == 0;
        let only = |figure: Option<f64>| figure.filter(|_| is_whole);
        let refill = summary.refill.as_ref().filter(|_| is_whole);
        let status = match summary.failed {
            0 => summary.scheduler.status.to_string(),
            failed => format!("{}, {failed} failed", summary.scheduler.status),
        };
        Self {
            machine: point.name().into(),
            shift: point.shift,
            refill_us: point.refill_us,
            scheduler: scheduler.into(),
            mean_ms: only(summary.turnaround_ms.map(|stats| stats.mean)),
            mean_slowdown: only(summary.slowdown.map(|stats| stats.mean)),
            short_ms: only(summary.short.turnaround_ms.map(|stats| stats.mean)),
            long_ms: only(summary.long.turnaround_ms.map(|stats| stats.mean)),
            cpu_over_service: only(summary.cpu_over_service),
            refills: refill.map(|one| one.refills),
            moves: refill.map(|one| one.cores + one.caches + one.nodes),
            refill_ms: refill.map(|one| one.refill_ms),
            status,
            kernel: summary.kernel.clone(),
            commit: String::new(),
            programs: String::new(),
        }
    }

    fn key(&self) -> (&str, u32, u32, &str) {
        (&self.machine, self.shift, self.refill_us, &self.scheduler)
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
        Ok(Self {
            path: path.to_path_buf(),
            lines: rows::read(path)?,
        })
    }

    /// All of them.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The result of this run.
    pub fn line(&self, point: &Point, scheduler: &str) -> Option<&Line> {
        let key = (point.name(), point.shift, point.refill_us, scheduler);
        self.lines.iter().find(|line| line.key() == key)
    }

    /// The schedulers that have results: EEVDF and ours first, others by name.
    pub fn schedulers(&self) -> Vec<String> {
        let names = self.lines.iter().map(|line| line.scheduler.clone());
        let mut names: Vec<String> = names.collect();
        names.sort_by_key(|name| (name != "eevdf", !name.starts_with("scx_sfs"), name.clone()));
        names.dedup();
        names
    }

    /// Keeps a result, in place of a former one of the same run. The file is replaced as a
    /// whole, so it is never half written.
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
pub(crate) mod tests {
    use super::*;
    use crate::points::MACHINES;

    /// A line with these figures as mean turnaround and mean slowdown.
    pub(crate) fn line(point: &Point, scheduler: &str, mean: f64, slowdown: f64) -> Line {
        Line {
            machine: point.name().into(),
            shift: point.shift,
            refill_us: point.refill_us,
            scheduler: scheduler.into(),
            mean_ms: Some(mean),
            mean_slowdown: Some(slowdown),
            short_ms: Some(mean / 2.0),
            long_ms: Some(mean * 4.0),
            cpu_over_service: Some(1.1),
            refills: Some(3),
            moves: Some(1),
            refill_ms: Some(0.5),
            status: "ok".into(),
            kernel: "6.18".into(),
            commit: "abc".into(),
            programs: "123".into(),
        }
    }

    pub(crate) fn point(refill_us: u32, shift: u32) -> Point {
        Point {
            machine: &MACHINES[0],
            shift,
            refill_us,
        }
    }

    #[test]
    fn results_are_replaced_and_survive_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/sensitivity.csv");
        let mut results = Results::read(&path).unwrap();
        for (scheduler, mean) in [
            ("scx_x", 1.0),
            ("scx_sfs", 2.0),
            ("eevdf", 3.0),
            ("eevdf", 4.0),
        ] {
            results
                .put(line(&point(50, 0), scheduler, mean, 1.0))
                .unwrap();
        }
        let read = Results::read(&path).unwrap();
        assert_eq!(read.lines(), results.lines());
        assert_eq!(read.lines().len(), 3);
        assert_eq!(read.schedulers(), ["eevdf", "scx_sfs", "scx_x"]);
        let found = read.line(&point(50, 0), "eevdf").unwrap();
        assert_eq!(found.mean_ms, Some(4.0));
        assert_eq!(read.line(&point(50, 1), "eevdf"), None);
    }
}
