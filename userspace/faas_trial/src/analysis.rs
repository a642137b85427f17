//! What a trial shows, and what it cannot show.
//!
//! The block is the unit: all rows have replayed its trace, and the ratio of a row's figure
//! to that of the first `eevdf` is one observation. `eevdf again` is the same scheduler, so
//! its ratios are noise; the end of their interval that is farther from 1 is the *noise
//! floor*. A difference counts if the whole interval of a row is beyond the floor, and its
//! probability, corrected for the number of rows, is below 0.05. If something speaks against
//! the trial as a whole, nothing counts.

use crate::file::{round, Measured, Replayed, Trial};
use crate::plan::Row;
use faas_data::measure::Measure;
use faas_data::trace::Invocation;
use faas_seeds::estimate::{holm, Estimate, Observation, LEVEL};
use faas_seeds::figure::Figure;
use faas_seeds::split::Splits;
use serde::{Deserialize, Serialize};

/// A noise floor above this factor hides what a scheduler may change.
pub const FLOOR: f64 = 1.25;

/// The fastest and the slowest speed before a replay may differ by this factor.
pub const SPEEDS: f64 = 1.10;

/// The mean share of CPU time that the hypervisor may take.
pub const STEAL: f64 = 0.02;

/// The kernel's clock and the hardware's may differ by one part of so many.
const CLOCKS: u64 = 200;

/// The mean delay of arrivals may be this share of the mean turnaround of the short ones.
const LATE: f64 = 0.01;

/// The figures that are compared.
const FIGURES: [Figure; 5] = [
    Figure::Turnaround,
    Figure::Slowdown,
    Figure::SlowdownP99,
    Figure::Short,
    Figure::Long,
];

/// The rows that are compared with the first one.
const ROWS: [Row; 3] = [Row::Again, Row::ScxSfs, Row::Renice];

/// What follows from a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Why nothing in the trial is a result; empty if nothing speaks against it.
    pub against: Vec<String>,
    /// What speaks against single rows.
    pub remarks: Vec<String>,
    /// The comparisons, load by load and figure by figure.
    pub lines: Vec<Line>,
}

/// One figure of one row, against the first row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The load.
    pub load: f64,
    /// The figure; smaller is better in each.
    pub figure: String,
    /// The row.
    pub row: Row,
    /// Blocks in which both rows have the figure.
    pub blocks: usize,
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// The interval of 95 %, if there is one.
    pub interval: Option<[f64; 2]>,
    /// The probability, corrected for the number of rows; `None` for noise.
    pub p: Option<f64>,
    /// What this shows.
    pub finding: Finding,
}

/// What a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The row is the first one again: this is the noise.
    Noise,
    /// The row's figure is smaller, beyond the noise.
    Smaller,
    /// The row's figure is larger, beyond the noise.
    Larger,
    /// No difference that this trial can show.
    None,
    /// The noise is too large for this figure.
    TooNoisy,
    /// Something speaks against the trial or the row.
    NotAResult,
}

impl Finding {
    /// It in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Smaller => "smaller",
            Self::Larger => "larger",
            Self::None => "no difference that this trial can show",
            Self::TooNoisy => "the noise is too large",
            Self::NotAResult => "not a result",
        }
    }
}

/// An estimate on its way to a line.
struct Found {
    load: f64,
    figure: Figure,
    row: Row,
    estimate: Estimate,
}

/// Analyses a trial, which must have passed [`crate::verify::shape`].
pub fn analyse(trial: &Trial) -> Said {
    let against = against(trial);
    let remarks = remarks(trial);
    let found = found(trial);
    let tested = found.iter().filter(|one| one.row != Row::Again);
    let p: Vec<f64> = tested
        .map(|one| one.estimate.test.map_or(1.0, |test| test.p))
        .collect();
    let mut corrected = holm(&p).into_iter();
    let lines = found.iter().map(|one| {
        let p = match one.row {
            Row::Again => None,
            _ => corrected.next(),
        };
        let floor = floor(&found, one);
        let trusted = against.is_empty() && complaint(trial, one.load, one.row).is_none();
        line(one, p, floor, trusted)
    });
    let lines = lines.collect();
    Said {
        against,
        remarks,
        lines,
    }
}

/// The noise floor of the load and figure of `one`, as a factor of 1 or more; `None` if
/// there is no interval of noise.
fn floor(found: &[Found], one: &Found) -> Option<f64> {
    let noise = found.iter().find(|other| {
        other.row == Row::Again && other.load == one.load && other.figure == one.figure
    });
    let test = noise?.estimate.test?;
    Some(test.high.max(1.0 / test.low))
}

fn line(one: &Found, p: Option<f64>, floor: Option<f64>, trusted: bool) -> Line {
    let test = one.estimate.test;
    Line {
        load: one.load,
        figure: one.figure.name().to_string(),
        row: one.row,
        blocks: one.estimate.seeds,
        ratio: round(one.estimate.ratio),
        interval: test.map(|test| [round(test.low), round(test.high)]),
        p: p.map(round),
        finding: match p {
            None => Finding::Noise,
            Some(_) if !trusted => Finding::NotAResult,
            Some(p) => finding(one, p, floor),
        },
    }
}

/// What a row of a trial shows against which nothing speaks.
fn finding(one: &Found, p: f64, floor: Option<f64>) -> Finding {
    let (Some(test), Some(floor)) = (one.estimate.test, floor) else {
        return Finding::TooNoisy;
    };
    if floor > FLOOR {
        return Finding::TooNoisy;
    }
    match p < LEVEL {
        true if test.high < 1.0 / floor => Finding::Smaller,
        true if test.low > floor => Finding::Larger,
        _ => Finding::None,
    }
}

/// All estimates, load by load and figure by figure, noise first.
fn found(trial: &Trial) -> Vec<Found> {
    let mut all = Vec::new();
    for load in &trial.plan.loads {
        let blocks: Vec<Figures> = of_load(trial, *load).map(Figures::new).collect();
        for figure in FIGURES {
            for row in ROWS {
                let ratios = (1u64..).zip(&blocks).filter_map(|(seed, block)| {
                    let ratio = block.of(row, figure)? / block.of(Row::Eevdf, figure)?;
                    (ratio.is_finite() && ratio > 0.0).then_some(Observation { seed, ratio })
                });
                if let Some(estimate) = Estimate::of(&ratios.collect::<Vec<_>>()) {
                    all.push(Found {
                        load: *load,
                        figure,
                        row,
                        estimate,
                    });
                }
            }
        }
    }
    all
}

/// The blocks of a load.
fn of_load(trial: &Trial, load: f64) -> impl Iterator<Item = &Measured> {
    let pairs = trial.plan.blocks.iter().zip(&trial.blocks);
    pairs.filter_map(move |(planned, block)| (planned.load == load).then_some(block))
}

/// The figures of one block.
struct Figures(Vec<(Row, Vec<Measure>, Splits)>);

impl Figures {
    fn new(block: &Measured) -> Self {
        let trace: Vec<Invocation> = block
            .arrival_us
            .iter()
            .zip(&block.service_us)
            .map(|(arrival, service)| Invocation::cpu(*arrival, "f", *service))
            .collect();
        let splits = Splits::new(&trace, None);
        let measured = block.rows.iter().filter(|row| is_usable(row));
        let rows = measured.map(|row| (row.row, measures(row, &trace), splits.clone()));
        Self(rows.collect())
    }

    fn of(&self, row: Row, figure: Figure) -> Option<f64> {
        let (_, done, splits) = self.0.iter().find(|(name, ..)| *name == row)?;
        figure.of(done, splits)
    }
}

/// Whether a replay has figures: its scheduler was there from begin to end.
fn is_usable(row: &Replayed) -> bool {
    row.status == "ok" || row.status == "bad-exit"
}

/// The measures of the invocations that have completed.
fn measures(row: &Replayed, trace: &[Invocation]) -> Vec<Measure> {
    let times = row.turnaround_us.iter().zip(&row.delay_us);
    let done = times.zip(trace).enumerate();
    done.filter_map(|(id, ((turnaround, delay), one))| {
        let turnaround_us = (*turnaround)?;
        Some(Measure {
            id,
            turnaround_us,
            queue_delay_us: (*delay)?,
            slowdown: turnaround_us as f64 / one.uncontended_us().max(1) as f64,
        })
    })
    .collect()
}

/// What speaks against the whole trial.
fn against(trial: &Trial) -> Vec<String> {
    let mut all = Vec::new();
    let (done, planned) = (trial.blocks.len(), trial.plan.blocks.len());
    if done < planned {
        all.push(format!(
            "it ended early: {done} of {planned} blocks were run"
        ));
    }
    if trial.about.is_emulated {
        all.push("the CPUs are emulated by a program, which is no server".to_string());
    }
    if let Some([kernel, rtc]) = trial.clocks_s {
        // Both count whole seconds.
        if kernel.abs_diff(rtc) > 2 + rtc / CLOCKS {
            all.push(format!(
                "the kernel's clock is wrong: it counted {kernel} s, the hardware's {rtc} s"
            ));
        }
    }
    let replays = || trial.blocks.iter().flat_map(|block| &block.rows);
    let speeds = || replays().map(|row| row.speed);
    let (slow, fast) = (
        speeds().fold(f64::MAX, f64::min),
        speeds().fold(0.0, f64::max),
    );
    if slow <= 0.0 || fast > slow * SPEEDS {
        all.push(format!(
            "the machine's speed changed by a factor of {:.2} between replays (at most {SPEEDS})",
            fast / slow
        ));
    }
    let steal: Vec<f64> = replays().filter_map(|row| row.steal).collect();
    if let Some(mean) = faas_data::stats::mean(&steal).filter(|mean| *mean > STEAL) {
        all.push(format!(
            "the hypervisor took {:.1} % of the CPU time (at most {:.0} %)",
            mean * 100.0,
            STEAL * 100.0
        ));
    }
    all
}

/// What speaks against single rows.
fn remarks(trial: &Trial) -> Vec<String> {
    let mut all = Vec::new();
    for load in &trial.plan.loads {
        for row in Row::ALL {
            let told = complaint(trial, *load, row).or_else(|| lateness(trial, *load, row));
            all.extend(told.map(|what| format!("load {load}, {}: {what}", row.name())));
        }
    }
    all
}

/// The replays of a row at a load.
fn of_row(trial: &Trial, load: f64, row: Row) -> impl Iterator<Item = &Replayed> {
    of_load(trial, load).flat_map(move |block| block.rows.iter().filter(move |one| one.row == row))
}

/// Why figures of a row at a load, or of the first row there, are not those of the whole
/// workload under that scheduler.
fn complaint(trial: &Trial, load: f64, row: Row) -> Option<String> {
    let both = || of_row(trial, load, row).chain(of_row(trial, load, Row::Eevdf));
    if let Some(bad) = both().find(|one| one.status != "ok") {
        let count = both().filter(|one| one.status == bad.status).count();
        return Some(format!(
            "the scheduler was `{}` in {count} replays",
            bad.status
        ));
    }
    let failed = |one: &Replayed| {
        one.turnaround_us
            .iter()
            .filter(|time| time.is_none())
            .count()
    };
    let failed: usize = both().map(failed).sum();
    (failed > 0).then(|| format!("{failed} invocations failed"))
}

/// That arrivals were late.
fn lateness(trial: &Trial, load: f64, row: Row) -> Option<String> {
    let mut shares = Vec::new();
    for block in of_load(trial, load) {
        let figures = Figures::new(block);
        let short_ms = figures.of(row, Figure::Short);
        let replay = block.rows.iter().find(|one| one.row == row);
        let pair = replay.zip(short_ms);
        shares.extend(pair.map(|(one, ms)| one.late_us / 1e3 / ms));
    }
    let share = faas_data::stats::mean(&shares).filter(|share| *share > LATE)?;
    Some(format!(
        "arrivals were late by {:.1} % of the turnaround of the short ones",
        share * 100.0
    ))
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
pub(crate) mod tests;
