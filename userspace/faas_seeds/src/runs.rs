//! Reads the runs of a series, and what speaks against each.
//!
//! - A run whose scheduler was not there from the first arrival to the last completion has
//!   no figures: they would be those of the scheduler that took its place.
//! - A run with failed invocations has the figures of the others.
//!
//! Both are troubles, and the report shows every trouble.

use crate::figure::{Figure, Part};
use crate::list::{Repetition, Series};
use crate::split::Splits;
use anyhow::{bail, Result};
use faas_data::measure::Measure;
use faas_data::result;
use faas_data::summary::slice::SliceLog;
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
    pub figures: Vec<Value>,
    /// The share of all invocations that is short by the gap, 0 to 1, if there is a gap.
    pub gap: Option<f64>,
    /// The share that is not demoted, 0 to 1, if a scheduler of its seed logs S.
    pub kept: Option<f64>,
}

/// One figure of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The invocations that count.
    pub part: Part,
    /// The figure.
    pub figure: Figure,
    /// Its value.
    pub value: f64,
}

/// What speaks against a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What happened: `ejected`.
    pub what: String,
    /// How often, if that can be told.
    pub count: Option<usize>,
    /// Whether a row with it can still stand out.
    pub is_mild: bool,
}

impl Trouble {
    fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            count: None,
            is_mild: false,
        }
    }
}

impl Run {
    /// One of its figures.
    pub fn figure(&self, part: Part, figure: Figure) -> Option<f64> {
        let is_it = |known: &&Value| known.part == part && known.figure == figure;
        self.figures.iter().find(is_it).map(|found| found.value)
    }
}

/// Reads all runs of `series`, whose list is in `folder`: for each repetition, all rows. With
/// `trim` they have figures also without that share, in per cent, at each end.
///
/// # Errors
/// If a file is malformed, does not belong to its trace, or two seeds have the same trace.
pub fn read(series: &Series, folder: &Path, trim: Option<u8>) -> Result<Vec<Run>> {
    let parts = parts(trim);
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
        let slice = slice(&summaries);
        let source = Source {
            place: &place,
            slice: slice.as_ref(),
            parts: &parts,
        };
        runs.extend(of_repetition(series, repetition, &source, summaries)?);
    }
    note_other_settings(&mut runs);
    Ok(runs)
}

/// The parts of a trace that have figures of their own.
pub fn parts(trim: Option<u8>) -> Vec<Part> {
    let trimmed = trim.map(Part::Middle);
    [Part::All].into_iter().chain(trimmed).collect()
}

/// Where the figures of one repetition come from.
struct Source<'a> {
    /// The folder.
    place: &'a Path,
    /// What the first scheduler that logs S has logged.
    slice: Option<&'a SliceLog>,
    parts: &'a [Part],
}

fn slice(summaries: &[Option<Summary>]) -> Option<SliceLog> {
    let complete = summaries.iter().flatten().filter(|one| is_complete(one));
    complete.filter_map(|one| one.slice.clone()).next()
}

/// Whether the scheduler was there from the first arrival to the last completion.
fn is_complete(summary: &Summary) -> bool {
    matches!(summary.scheduler.status, Status::Ok | Status::BadExit)
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
    source: &Source,
    summaries: Vec<Option<Summary>>,
) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    let mut measured = Vec::new();
    for (row, summary) in series.rows.iter().zip(summaries) {
        let mut run = missing(repetition, row);
        if let Some(summary) = summary {
            fill(&mut run, &summary, source)?;
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
        gap: None,
        kept: None,
    }
}

/// Fills in what the summary and the result say.
fn fill(run: &mut Run, summary: &Summary, source: &Source) -> Result<()> {
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
    if is_complete(summary) {
        measure(run, summary, source)?;
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
            is_mild: false,
        });
    }
    if summary.is_late() {
        // The lag is a part of each turnaround, under every scheduler.
        troubles.push(Trouble {
            is_mild: true,
            ..Trouble::new("arrivals late")
        });
    }
    troubles
}

/// Computes the figures of a run.
fn measure(run: &mut Run, summary: &Summary, source: &Source) -> Result<()> {
    let path = source.place.join(format!("{}.csv", summary.trace.name));
    let trace = Trace::read(&path)?;
    if trace.sha256 != summary.trace.sha256 {
        bail!(
            "{} is not the trace that {} has replayed; run the series again",
            path.display(),
            summary.scheduler.name
        );
    }
    let name = &summary.scheduler.name;
    let result = source.place.join(format!("{name}.csv"));
    let records = result::read(&result, &trace.invocations)?;
    let done = Measure::all(&records, &trace.invocations);
    let splits = Splits::new(&trace.invocations, source.slice);
    for part in source.parts {
        let counted = part.of(&done, trace.invocations.len());
        let values = Figure::ALL.into_iter().filter_map(|figure| {
            let value = figure.of(&counted, &splits)?;
            Some(Value {
                part: *part,
                figure,
                value,
            })
        });
        run.figures.extend(values);
    }
    let over_alone = summary.fixed_work.as_ref();
    run.figures.extend(over_alone.map(|work| Value {
        part: Part::All,
        figure: Figure::OverAlone,
        value: work.all.cpu_over_alone,
    }));
    run.gap = splits.gap.as_deref().and_then(share);
    run.kept = splits.kept.as_deref().and_then(share);
    Ok(())
}

/// The share of those that are short.
fn share(short: &[bool]) -> Option<f64> {
    let count = short.iter().filter(|short| **short).count();
    (!short.is_empty()).then(|| count as f64 / short.len() as f64)
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
        let runs = read(&folder.series(), folder.path(), None).unwrap();
        assert_eq!((runs[0].row.as_str(), runs[0].status.as_str()), ("a", "ok"));
        assert_eq!(runs[0].figure(Part::All, Figure::Slowdown), Some(2.0));
        assert_eq!(runs[1].figure(Part::All, Figure::SlowdownP99), Some(3.0));
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
        let runs = read(&folder.series(), folder.path(), None).unwrap();
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
        let said = read(&folder.series(), folder.path(), None)
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
        let said = read(&folder.series(), folder.path(), None)
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
        let runs = read(&folder.series(), folder.path(), None).unwrap();
        assert!(runs[..3].iter().all(|run| run.troubles.is_empty()));
        assert_eq!(
            whats(&runs[3]),
            [("other kernel", None), ("other settings", None)]
        );
    }

    #[test]
    fn trimmed_figures_stand_beside_those_of_all() {
        let folder = Folder::new(&["a", "b"], &[1]);
        folder.put(1, "a", Made::times(2));
        let runs = read(&folder.series(), folder.path(), Some(20)).unwrap();
        // Of 1 to 10 ms, and 1 us, the first two and the last two do not count.
        let of = |part| runs[0].figure(part, Figure::TurnaroundP99);
        assert_eq!(of(Part::All), Some(2.0 * 10.001));
        assert_eq!(of(Part::Middle(20)), Some(2.0 * 8.001));
    }

    #[test]
    fn each_split_has_figures_if_there_is_one() {
        let folder = Folder::new(&["a", "b"], &[1]);
        folder.put(1, "a", Made::times(2));
        folder.put(
            1,
            "b",
            Made {
                s_ms: Some(3.5),
                ..Made::times(4)
            },
        );
        let runs = read(&folder.series(), folder.path(), None).unwrap();
        // Both rows have the split of the one that logs S; 1 to 3 ms are at most 3.5 ms.
        for (run, times) in runs.iter().zip([2.0, 4.0]) {
            assert_eq!(run.kept, Some(0.3));
            let kept = run.figure(Part::All, Figure::Kept).unwrap();
            assert!((kept - times * 2.001).abs() < 1e-9, "{kept}");
        }
        // The largest ratio of neighbours from half of them on is that of 5 to 6 ms.
        assert_eq!(runs[0].gap, Some(0.5));
        let gap = runs[0].figure(Part::All, Figure::UpToGap);
        assert!((gap.unwrap() - 2.0 * 3.001).abs() < 1e-9);
    }
}
