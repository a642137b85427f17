//! What was measured, read back from a setting's folder: summaries (format
//! `faasbench.summary/1`), results and the trace.

use crate::plan::Setting;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;

/// What of a summary the figures use.
#[derive(Debug, Clone, Deserialize)]
pub struct Summary {
    /// The scheduler and how it did.
    pub scheduler: Scheduler,
    /// How its CPUs were made.
    pub accel: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The trace.
    pub trace: TraceInfo,
}

/// The part on the trace.
#[derive(Debug, Clone, Deserialize)]
pub struct TraceInfo {
    /// The load really offered.
    pub offered_load: Option<f64>,
}

/// The part on the scheduler.
#[derive(Debug, Clone, Deserialize)]
pub struct Scheduler {
    /// Its version.
    pub version: String,
    /// `ok`, or what went wrong.
    pub status: String,
    /// How it went wrong.
    pub detail: String,
}

/// One invocation, measured. Times in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Record {
    /// Its place in the trace, from 0.
    pub id: usize,
    /// Its function.
    pub function: String,
    /// Its arrival.
    pub arrival_us: u64,
    /// When it first ran, if it did.
    pub start_us: Option<u64>,
    /// When it was through, if it was.
    pub end_us: Option<u64>,
    /// CPU time that it needs.
    pub service_us: u64,
    /// How often it gave its CPU up.
    pub voluntary_switches: u64,
    /// How often its CPU was taken away.
    pub involuntary_switches: u64,
}

/// One invocation as the trace has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Invocation {
    /// Its arrival in microseconds.
    pub arrival_us: u64,
    /// Its steps, as `io:20000;cpu:150000`.
    pub phases: String,
    /// LS or LD, where the workload has classes.
    #[serde(default)]
    pub class: Option<String>,
}

impl Invocation {
    /// Its turnaround on an idle machine in microseconds: all its steps.
    pub fn uncontended_us(&self) -> u64 {
        let step = |step: &str| step.split_once(':')?.1.parse::<u64>().ok();
        self.phases.split(';').filter_map(step).sum()
    }
}

/// One row of a setting: a scheduler and what it did.
#[derive(Debug, Clone)]
pub struct Run {
    /// The row's name.
    pub name: String,
    /// Its summary.
    pub summary: Summary,
    /// What it measured, by id; empty if nothing was.
    pub records: Vec<Record>,
}

impl Run {
    /// Whether it is a simulation.
    pub fn is_simulated(&self) -> bool {
        self.summary.accel == "simulated"
    }

    /// Its name for tables and legends.
    pub fn label(&self) -> String {
        let mark = if self.is_simulated() {
            " (simulated)"
        } else {
            ""
        };
        format!("{}{mark}", self.name)
    }

    /// What went wrong with it.
    pub fn trouble(&self) -> Option<String> {
        let scheduler = &self.summary.scheduler;
        (scheduler.status != "ok")
            .then(|| format!("{}: {} ({})", self.name, scheduler.status, scheduler.detail))
    }
}

/// A setting as measured: its trace and the rows asked for.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What it is, for headings.
    pub title: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Its trace.
    pub trace: Vec<Invocation>,
    /// Its rows.
    pub runs: Vec<Run>,
    /// What the loader printed, of rows that have a log.
    pub logs: Vec<(String, String)>,
}

impl Measured {
    /// Reads `setting` from `folder`.
    ///
    /// # Errors
    /// If a row is missing or a file is not as its format says.
    pub fn read(folder: &Path, setting: &Setting) -> Result<Self> {
        let mut runs = Vec::new();
        let mut logs = Vec::new();
        for row in &setting.rows {
            runs.push(read_run(folder, row.name)?);
            if let Ok(log) = std::fs::read_to_string(folder.join(format!("{}.log", row.name))) {
                logs.push((row.name.to_string(), log));
            }
        }
        let trace = match &setting.source {
            crate::plan::Source::Generated { workload, .. } => format!("{workload}.trace.csv"),
            crate::plan::Source::Fc { .. } => "fc.csv".to_string(),
        };
        Ok(Self {
            title: setting.title.clone(),
            cpus: setting.cpus,
            trace: read_csv(&folder.join(trace))?,
            runs,
            logs,
        })
    }

    /// A row by its name.
    pub fn run(&self, name: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.name == name)
    }

    /// The service time up to which an invocation is short, in microseconds: that
    /// of the shortest 83 %, the paper's split.
    pub fn short_us(&self) -> u64 {
        let Some(run) = self.runs.iter().find(|run| !run.records.is_empty()) else {
            return 0;
        };
        let mut all: Vec<u64> = run.records.iter().map(|one| one.service_us).collect();
        all.sort_unstable();
        all[((all.len() as f64 * 0.83).ceil() as usize).clamp(1, all.len()) - 1]
    }

    /// Slowdowns in the order of the trace: turnaround / uncontended duration.
    pub fn slowdowns(&self, run: &Run) -> Vec<f64> {
        let pair = |one: &Record| {
            let uncontended = self.trace.get(one.id)?.uncontended_us();
            Some((one.end_us? - one.arrival_us) as f64 / uncontended.max(1) as f64)
        };
        run.records.iter().filter_map(pair).collect()
    }
}

/// Turnarounds in milliseconds of those that completed and that `keep` holds of.
pub fn turnarounds_ms(run: &Run, keep: impl Fn(&Record) -> bool) -> Vec<f64> {
    let kept = run.records.iter().filter(|one| keep(one));
    kept.filter_map(|one| Some((one.end_us? - one.arrival_us) as f64 / 1e3))
        .collect()
}

fn read_run(folder: &Path, name: &str) -> Result<Run> {
    let path = folder.join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} is missing: measure it with make paper", path.display()))?;
    let summary =
        serde_json::from_str(&text).with_context(|| format!("{} is no summary", path.display()))?;
    let path = folder.join(format!("{name}.csv"));
    let records = if path.exists() {
        read_csv(&path)?
    } else {
        Vec::new()
    };
    Ok(Run {
        name: name.to_string(),
        summary,
        records,
    })
}

fn read_csv<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>> {
    let cannot = || format!("cannot read {}", path.display());
    let mut reader = csv::Reader::from_path(path).with_context(cannot)?;
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_alone_takes_all_its_steps() {
        let one = Invocation {
            arrival_us: 0,
            phases: "io:20;cpu:5;io:1".into(),
            class: None,
        };
        assert_eq!(one.uncontended_us(), 26);
    }

    #[test]
    fn what_did_not_complete_has_no_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        let text = "id,function,arrival_us,start_us,end_us,cpu_us,service_us,voluntary_switches,involuntary_switches,exit\n\
                    0,f,5,7,2005,9,8,1,2,0\n1,f,6,,,0,8,0,0,256\n";
        std::fs::write(&path, text).unwrap();
        let records: Vec<Record> = read_csv(&path).unwrap();
        assert_eq!((records[0].start_us, records[1].end_us), (Some(7), None));
        let bad = text.replace("2005", "x");
        std::fs::write(&path, bad).unwrap();
        let said = format!("{:#}", read_csv::<Record>(&path).unwrap_err());
        assert!(said.contains("r.csv") && said.contains("line: 2"), "{said}");
    }
}
