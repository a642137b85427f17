//! Reads the runs of a series, and what speaks against each.
//!
//! - A run whose scheduler was not there from the first arrival to the last completion has
//!   no figures: they would be those of the scheduler that took its place.
//! - A run with failed invocations has the figures of the others.
//!
//! Both are troubles, and the report shows every trouble.

use crate::figure::Figure;
use crate::list::{Repetition, Series};
use anyhow::{bail, Result};
use faas_data::measure::{shortest, Measure};
use faas_data::result;
use faas_data::summary::{json, Status, Summary};
use faas_data::trace::Trace;
use std::collections::HashMap;
use std::path::Path;

/// One scheduler in one repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The requested load, if known.
    pub load: Option<String>,
    /// The name of its row.
    pub row: String,
    /// Its status as in the summary, or `missing`.
    pub status: String,
    /// Invocations that failed.
    pub failed: usize,
    /// Whether it is from a simulation.
    pub simulated: bool,
    /// What it ran with, for the comparison with its other seeds.
    pub setting: Option<String>,
    /// What speaks against it.
    pub troubles: Vec<Trouble>,
    /// Its figures.
    pub figures: Vec<(Figure, f64)>,
}

/// What speaks against a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What happened: `ejected`.
    pub what: String,
    /// How often, if that can be told.
    pub count: Option<usize>,
}

impl Trouble {
    fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            count: None,
        }
    }
}

impl Run {
    /// One of its figures.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let found = self.figures.iter().find(|(known, _)| *known == figure);
        found.map(|(_, value)| *value)
    }
}

/// Reads all runs of `series`, whose list is in `folder`: for each repetition, all rows.
///
/// # Errors
/// If a file is malformed, does not belong to its trace, or two seeds have the same trace.
pub fn read(series: &Series, folder: &Path) -> Result<Vec<Run>> {
    let mut traces = HashMap::new();
    let mut runs = Vec::new();
    for repetition in &series.repetitions {
        let place = folder.join(&repetition.folder);
        let summaries = summaries(&series.rows, &place)?;
        if let Some(first) = summaries.iter().flatten().next() {
            let key = (repetition.load.clone(), first.trace.sha256.clone());
            if let Some(other) = traces.insert(key, repetition.seed) {
                bail!(
                    "the seeds {other} and {} have the same trace, so they are one observation; \
                     the workload does not depend on its seed",
                    repetition.seed
                );
            }
        }
        runs.extend(of_repetition(series, repetition, &place, summaries)?);
    }
    note_other_settings(&mut runs);
    Ok(runs)
}

/// The summaries of the rows that have one.
fn summaries(rows: &[String], place: &Path) -> Result<Vec<Option<Summary>>> {
    let read = |row: &String| {
        let path = place.join(format!("{row}.json"));
        path.exists().then(|| json::read(&path)).transpose()
    };
    rows.iter().map(read).collect()
}

/// The runs of one repetition, in the order of the rows.
fn of_repetition(
    series: &Series,
    repetition: &Repetition,
    place: &Path,
    summaries: Vec<Option<Summary>>,
) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    let mut measured = Vec::new();
    for (row, summary) in series.rows.iter().zip(summaries) {
        let mut run = missing(repetition, row);
        if let Some(summary) = summary {
            fill(&mut run, &summary, place)?;
            // What was not measured may not say what it would have run on.
            if !run.figures.is_empty() {
                measured.push(summary);
            }
        }
        runs.push(run);
    }
    let together = faas_report::Comparison::new(measured, &series.rows[0]);
    let with_figures = runs.iter_mut().filter(|run| !run.figures.is_empty());
    for (index, run) in with_figures.enumerate() {
        let differs = together.differs(index).into_iter();
        let differs = differs.map(|what| Trouble::new(format!("other {what}")));
        run.troubles.extend(differs);
    }
    Ok(runs)
}

/// A run of which nothing is known.
fn missing(repetition: &Repetition, row: &str) -> Run {
    Run {
        seed: repetition.seed,
        load: repetition.load.clone(),
        row: row.to_string(),
        status: "missing".to_string(),
        failed: 0,
        simulated: false,
        setting: None,
        troubles: vec![Trouble::new("not measured")],
        figures: Vec::new(),
    }
}

/// Fills in what the summary and the result say.
fn fill(run: &mut Run, summary: &Summary, place: &Path) -> Result<()> {
    run.status = summary.scheduler.status.to_string();
    run.failed = summary.failed;
    run.simulated = summary.is_simulated();
    run.setting = Some(format!(
        "{} {:?} {} {} {} {:?}",
        summary.scheduler.version,
        summary.scheduler.args,
        summary.kernel,
        summary.accel,
        summary.trace.cpus,
        summary.sandbox.as_ref().map(|one| &one.kind),
    ));
    run.troubles = troubles(summary);
    if matches!(summary.scheduler.status, Status::Ok | Status::BadExit) {
        run.figures = figures(summary, place)?;
    }
    Ok(())
}

/// What speaks against a run, by its summary.
fn troubles(summary: &Summary) -> Vec<Trouble> {
    let status = match summary.scheduler.status {
        Status::Ok => None,
        Status::NotLoaded => Some("not loaded"),
        Status::Ejected => Some("ejected"),
        Status::Reloaded => Some("reloaded"),
        Status::BadExit => Some("bad exit"),
        Status::Lost => Some("lost with its machine"),
    };
    let mut troubles: Vec<Trouble> = status.into_iter().map(Trouble::new).collect();
    // Without a scheduler all of them failed, which is said already.
    if summary.failed > 0 && summary.turnaround_ms.is_some() {
        troubles.push(Trouble {
            what: "invocations failed".to_string(),
            count: Some(summary.failed),
        });
    }
    if summary.is_late() {
        troubles.push(Trouble::new("arrivals late"));
    }
    troubles
}

/// The figures of a run.
fn figures(summary: &Summary, place: &Path) -> Result<Vec<(Figure, f64)>> {
    let path = place.join(format!("{}.csv", summary.trace.name));
    let trace = Trace::read(&path)?;
    if trace.sha256 != summary.trace.sha256 {
        bail!(
            "{} is not the trace that {} has replayed; run the series again",
            path.display(),
            summary.scheduler.name
        );
    }
    let result = place.join(format!("{}.csv", summary.scheduler.name));
    let records = result::read(&result, &trace.invocations)?;
    let done = Measure::all(&records, &trace.invocations);
    let short = shortest(&trace.invocations);
    let all = Figure::ALL.into_iter();
    let known = all.filter_map(|figure| Some((figure, figure.of(&done, &short)?)));
    Ok(known.collect())
}

/// Notes runs that another build, kernel or machine has made than the first seed of their
/// row.
fn note_other_settings(runs: &mut [Run]) {
    let mut first: HashMap<String, String> = HashMap::new();
    for run in runs {
        let Some(setting) = run.setting.clone() else {
            continue;
        };
        // A lost machine did not say what it was.
        if run.figures.is_empty() {
            continue;
        }
        if *first.entry(run.row.clone()).or_insert(setting.clone()) != setting {
            run.troubles.push(Trouble::new("other settings"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, Made};

    fn whats(run: &Run) -> Vec<(&str, Option<usize>)> {
        let troubles = run.troubles.iter();
        troubles.map(|one| (one.what.as_str(), one.count)).collect()
    }

    #[test]
    fn a_run_has_its_figures() {
        let folder = Folder::new(&["a", "b"], &[1]);
        folder.put(1, "a", Made::times(2));
        folder.put(1, "b", Made::times(3));
        let runs = read(&folder.series(), folder.path()).unwrap();
        assert_eq!((runs[0].row.as_str(), runs[0].status.as_str()), ("a", "ok"));
        assert_eq!(runs[0].figure(Figure::Slowdown), Some(2.0));
        assert_eq!(runs[1].figure(Figure::SlowdownP99), Some(3.0));
        assert!(runs.iter().all(|run| run.troubles.is_empty()));
    }

    #[test]
    fn nothing_that_went_wrong_is_left_out() {
        let folder = Folder::new(&["a", "b"], &[1, 2, 3, 4, 5]);
        let of = |status| Made {
            status,
            ..Made::times(2)
        };
        folder.put(1, "a", of(Status::Ejected));
        folder.put(2, "a", of(Status::Lost));
        folder.put(
            3,
            "a",
            Made {
                failed: 2,
                ..Made::times(2)
            },
        );
        folder.put(4, "a", of(Status::BadExit));
        let runs = read(&folder.series(), folder.path()).unwrap();
        let found: Vec<_> = runs
            .iter()
            .filter(|run| run.row == "a")
            .map(whats)
            .collect();
        assert_eq!(
            found,
            [
                vec![("ejected", None)],
                vec![("lost with its machine", None)],
                vec![("invocations failed", Some(2))],
                vec![("bad exit", None)],
                vec![("not measured", None)],
            ]
        );
        let measured = runs.iter().filter(|run| !run.figures.is_empty());
        assert_eq!(measured.map(|run| run.seed).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn seeds_with_one_trace_are_one_observation() {
        let folder = Folder::new(&["a", "b"], &[1, 2]);
        for seed in [1, 2] {
            folder.put_trace(seed, 7);
            folder.put(seed, "a", Made::times(2));
        }
        let said = read(&folder.series(), folder.path())
            .unwrap_err()
            .to_string();
        assert!(
            said.starts_with("the seeds 1 and 2 have the same trace"),
            "{said}"
        );
    }

    #[test]
    fn another_trace_is_refused() {
        let folder = Folder::new(&["a", "b"], &[1]);
        folder.put(1, "a", Made::times(2));
        folder.put_trace(1, 8);
        let said = read(&folder.series(), folder.path())
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("is not the trace that a has replayed"),
            "{said}"
        );
    }

    #[test]
    fn another_kernel_is_noted_beside_the_others_and_the_other_seeds() {
        let folder = Folder::new(&["a", "b"], &[1, 2]);
        for seed in [1, 2] {
            folder.put(seed, "a", Made::times(2));
        }
        folder.put(1, "b", Made::times(2));
        folder.put(
            2,
            "b",
            Made {
                kernel: "k2",
                ..Made::times(2)
            },
        );
        let runs = read(&folder.series(), folder.path()).unwrap();
        assert!(runs[..3].iter().all(|run| run.troubles.is_empty()));
        assert_eq!(
            whats(&runs[3]),
            [("other kernel", None), ("other settings", None)]
        );
    }
}
