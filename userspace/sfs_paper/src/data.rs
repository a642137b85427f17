//! Reads the measurements of a setting from its folder: the trace, summaries
//! and results, in the formats of [`faas_data`].

use crate::measure::{COMMIT, CONVERTED};
use crate::plan::{Setting, Source};
use anyhow::{Context, Result};
use faas_data::measure::{shortest, Measure};
use faas_data::result::{self, Record};
use faas_data::summary::{json, Status, Summary};
use faas_data::trace::{Invocation, Trace};
use std::path::Path;

/// One row of a setting: a scheduler and its results.
#[derive(Debug, Clone)]
pub struct Run {
    /// The row's name.
    pub name: String,
    /// The summary.
    pub summary: Summary,
    /// The records, by id; empty if nothing was measured.
    pub records: Vec<Record>,
    /// The measures of the successful invocations, by id.
    pub measures: Vec<Measure>,
}

impl Run {
    /// Creates a row from the content of its files; `records` are those of
    /// `trace`, or empty.
    pub fn new(name: &str, summary: Summary, records: Vec<Record>, trace: &[Invocation]) -> Self {
        Self {
            name: name.to_string(),
            summary,
            measures: Measure::all(&records, trace),
            records,
        }
    }

    /// The name for tables and legends.
    pub fn label(&self) -> String {
        let mark = if self.summary.is_simulated() {
            " (simulated)"
        } else {
            ""
        };
        format!("{}{mark}", self.name)
    }

    /// The errors, if any.
    pub fn trouble(&self) -> Option<String> {
        let scheduler = &self.summary.scheduler;
        (scheduler.status != Status::Ok).then(|| {
            let (status, detail) = (scheduler.status, &scheduler.detail);
            format!("{}: {status} ({detail})", self.name)
        })
    }

    /// The records of the successful invocations.
    pub fn completed(&self) -> impl Iterator<Item = &Record> {
        let completed = |one: &&Record| one.completed().is_some();
        self.records.iter().filter(completed)
    }

    /// Turnarounds in milliseconds of the successful invocations for which
    /// `keep` is true.
    pub fn turnarounds_ms(&self, keep: impl Fn(&Measure) -> bool) -> Vec<f64> {
        let kept = self.measures.iter().filter(|one| keep(one));
        kept.map(Measure::turnaround_ms).collect()
    }
}

/// A measured setting: its trace and the requested rows.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The title, for headings.
    pub title: String,
    /// The name of its source.
    pub source: String,
    /// The commit that measured it, if it is known.
    pub commit: Option<String>,
    /// Number of CPUs.
    pub cpus: u32,
    /// Its trace.
    pub trace: Vec<Invocation>,
    /// For each invocation of the trace, whether it is short.
    pub short: Vec<bool>,
    /// Its rows.
    pub runs: Vec<Run>,
    /// The loader's output, for rows that have a log.
    pub logs: Vec<(String, String)>,
}

impl Measured {
    /// Creates a setting with its trace and no rows.
    pub fn new(setting: &Setting, trace: Vec<Invocation>) -> Self {
        Self {
            title: setting.title.clone(),
            source: setting.source.name(),
            commit: None,
            cpus: setting.cpus,
            short: shortest(&trace),
            trace,
            runs: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// Reads `setting` from `folder`.
    ///
    /// # Errors
    /// If a row is missing, a file is malformed, or a result belongs to another
    /// trace.
    pub fn read(folder: &Path, setting: &Setting) -> Result<Self> {
        let trace = match &setting.source {
            Source::Generated { workload, .. } => format!("{workload}.trace.csv"),
            Source::Fc { .. } | Source::List { .. } => CONVERTED.to_string(),
        };
        let trace = Trace::read(&folder.join(trace))?.invocations;
        let mut measured = Self::new(setting, trace);
        measured.commit = std::fs::read_to_string(folder.join(COMMIT)).ok();
        for row in &setting.rows {
            let run = read_run(folder, row.name, &measured.trace)?;
            measured.runs.push(run);
            if let Ok(log) = std::fs::read_to_string(folder.join(format!("{}.log", row.name))) {
                measured.logs.push((row.name.to_string(), log));
            }
        }
        Ok(measured)
    }

    /// The row with this name.
    pub fn run(&self, name: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// Turnarounds in milliseconds of the short invocations of a row.
    pub fn short_ms(&self, run: &Run) -> Vec<f64> {
        run.turnarounds_ms(|one| self.short[one.id])
    }

    /// Turnarounds in milliseconds of the long invocations of a row.
    pub fn long_ms(&self, run: &Run) -> Vec<f64> {
        run.turnarounds_ms(|one| !self.short[one.id])
    }
}

fn read_run(folder: &Path, name: &str, trace: &[Invocation]) -> Result<Run> {
    let path = folder.join(format!("{name}.json"));
    let summary = json::read(&path)
        .with_context(|| format!("row {name} is missing; run make paper to measure it"))?;
    let path = folder.join(format!("{name}.csv"));
    let records = if path.exists() {
        result::read(&path, trace)?
    } else {
        Vec::new()
    };
    Ok(Run::new(name, summary, records, trace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{row, Size};
    use faas_data::result::HEADER;
    use faas_data::summary::{summarise, SchedulerInfo, Setting as Ran};

    const SIZE: Size = Size {
        invocations: 3,
        headline: 3,
        cpus: 2,
        seed: 1,
        list: None,
        table1: "table1",
    };

    const TRACE: &str =
        "arrival_us,function,phases\n5,f,cpu:5000@fib;io:5000@pipe\n6,f,cpu:8\n7,f,cpu:8\n";

    /// The folder of a setting with this result as its only row.
    fn read(rows: &str) -> Result<Measured> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table1.trace.csv");
        std::fs::write(&path, TRACE).unwrap();
        let ran = Ran {
            cpus: 2,
            scheduler: SchedulerInfo {
                name: "eevdf".into(),
                version: "1".into(),
                args: String::new(),
                status: Status::BadExit,
                detail: "why".into(),
            },
            kernel: "k".into(),
            accel: "icount".into(),
            sandbox: None,
        };
        let summary = summarise(&Trace::read(&path).unwrap(), &[], &ran, &[]);
        let text = json::to_text(&summary).unwrap();
        std::fs::write(dir.path().join("eevdf.json"), text).unwrap();
        std::fs::write(dir.path().join("eevdf.csv"), format!("{HEADER}\n{rows}")).unwrap();
        Measured::read(dir.path(), &Setting::table1(SIZE, 1.0, &[row("eevdf")]))
    }

    #[test]
    fn failures_count_nowhere_and_phases_of_all_kinds_count() {
        let rows =
            "0,f,5,7,20005,9,5000,1,2,0,\n1,f,6,9,2006,0,8,0,0,signal:9,\n2,f,7,,,0,8,0,0,3,\n";
        let found = read(rows).unwrap();
        let run = &found.runs[0];
        assert_eq!(run.completed().count(), 1);
        assert_eq!(run.turnarounds_ms(|_| true), [20.0]);
        // 20 ms / (5 ms of CPU time and 5 ms blocked)
        assert_eq!(
            (run.measures[0].slowdown, run.measures[0].rte()),
            (2.0, 0.5)
        );
        assert_eq!(run.trouble().unwrap(), "eevdf: bad-exit (why)");
    }

    #[test]
    fn malformed_results_and_results_of_other_traces_are_refused() {
        let said = |rows| format!("{:#}", read(rows).unwrap_err());
        let found = said("0,f,5,7,x,9,5000,1,2,0,\n");
        assert!(found.contains("eevdf.csv:2: end `x`"), "{found}");
        let found = said("0,f,5,7,20005,9,8,1,2,0,\n");
        assert!(found.contains("id 0 is another invocation"), "{found}");
    }

    #[test]
    fn a_missing_row_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("table1.trace.csv"), TRACE).unwrap();
        let setting = Setting::table1(SIZE, 1.0, &[row("eevdf")]);
        let said = format!("{:#}", Measured::read(dir.path(), &setting).unwrap_err());
        assert!(
            said.contains("row eevdf is missing; run make paper to measure it"),
            "{said}"
        );
    }
}
