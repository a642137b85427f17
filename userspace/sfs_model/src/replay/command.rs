//! The commands `replay` and `compare`.

use super::compare::{Bounds, Comparison};
use super::expenses::Expenses;
use super::{replay, Policy, Setup};
use crate::machine::{Outcome, Settings};
use anyhow::Result;
use clap::Args;
use faas_data::measure::Measure;
use faas_data::output::{print, Output};
use faas_data::result::{self, Record};
use faas_data::stats::mean;
use faas_data::trace::Trace;
use sfs_kernel_model::oddities::Oddities;
use sfs_kernel_model::topology;
use sfs_policy::defaults;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// A replay.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The trace (`faasbench gen`)
    trace: PathBuf,
    /// Number of CPUs
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: u16,
    /// The policy
    #[arg(long, default_value = "learned")]
    policy: Policy,
    /// The result to write, in the format of faasbench
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What forks, exits, the replayer and others cost: guest (in virtual time), none, or changes to
    /// the guest's, for example fork=100000,exit=0 (ns)
    #[arg(long, default_value = "guest")]
    costs: Expenses,
    /// Print what happened last before the first finding, or before the end
    #[arg(long)]
    timeline: bool,
}

/// A comparison.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The trace of both results
    trace: PathBuf,
    /// The result of a live kernel (`faasbench run`)
    live: PathBuf,
    /// The result of the model
    model: PathBuf,
    /// Invocations with a shorter service time are short, us; default: S before the first arrival
    #[arg(long, default_value_t = defaults::INITIAL_SLICE_NS / 1_000)]
    short_us: u64,
    /// A turnaround agrees if it differs by at most so many milliseconds
    #[arg(long, default_value_t = 5.0, value_parser = bound)]
    ms: f64,
    /// Or by at most so many per cent
    #[arg(long, default_value_t = 10.0, value_parser = bound)]
    per_cent: f64,
    /// So many per cent of the invocations have to agree, or the exit status is 1
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    agree: f64,
}

/// A number that is not negative.
fn bound(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite() && *value >= 0.0);
    value.ok_or_else(|| "want a number, 0 or more".into())
}

/// A share in per cent.
fn share(text: &str) -> Result<f64, String> {
    let value = bound(text).ok().filter(|value| *value <= 100.0);
    value.ok_or_else(|| "want a number from 0 to 100".into())
}

impl ReplayArgs {
    /// Replays, and prints findings and a summary. Returns true if an invariant was violated.
    ///
    /// # Errors
    /// If the trace cannot be read or the result not be written.
    pub fn execute(&self) -> Result<bool> {
        let trace = Trace::read(&self.trace)?;
        let setup = Setup {
            trace: &trace.invocations,
            cpus: usize::from(self.cpus),
            policy: self.policy,
            topology: topology::flat(usize::from(self.cpus)),
            expenses: self.costs.clone(),
            is_named: false,
            others: Vec::new(),
            settings: Settings {
                recorded: self.timeline,
                oddities: Some(Oddities::default()),
                ..Settings::default()
            },
        };
        let began = Instant::now();
        let (outcome, records) = replay(&setup)?;
        let took_s = began.elapsed().as_secs_f64();
        if let Some(path) = &self.out {
            Output::create(path)?.commit(result::to_csv(&records).as_bytes())?;
        }
        let mut text = said(&outcome);
        let _ = writeln!(text, "{}", summary(&trace, &records, &outcome));
        // Not part of the output that repeats.
        eprintln!("{:.0} invocations a second", records.len() as f64 / took_s);
        print(text.as_bytes())?;
        Ok(!outcome.findings.is_empty())
    }
}

impl CompareArgs {
    /// Compares, and prints a table. Returns true if too few invocations agree.
    ///
    /// # Errors
    /// If a file cannot be read, or is not of this trace.
    pub fn execute(&self) -> Result<bool> {
        let trace = Trace::read(&self.trace)?.invocations;
        let [live, model] = [&self.live, &self.model].map(|path| result::read(path, &trace));
        let bounds = Bounds {
            ms: self.ms,
            per_cent: self.per_cent,
        };
        let comparison = Comparison::new(&trace, &live?, &model?, self.short_us, bounds);
        print(comparison.table().as_bytes())?;
        Ok(100.0 * comparison.agreement() < self.agree)
    }
}

fn said(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (at, event) in &outcome.timeline {
        let _ = writeln!(text, "{:>12.3} ms  {event}", *at as f64 / 1e6);
    }
    for line in &outcome.picture {
        let _ = writeln!(text, "        then     {line}");
    }
    for line in outcome.findings.iter().chain(&outcome.loader) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The last line.
fn summary(trace: &Trace, records: &[Record], outcome: &Outcome) -> String {
    let all = Measure::all(records, &trace.invocations);
    let of = |value: fn(&Measure) -> f64| {
        let values: Vec<f64> = all.iter().map(value).collect();
        mean(&values).unwrap_or_default()
    };
    format!(
        "{}: {} of {} invocations ended, mean turnaround {:.3} ms, mean slowdown {:.3}, {} events, \
         digest {:016x}, {} findings",
        trace.name,
        all.len(),
        records.len(),
        of(Measure::turnaround_ms),
        of(|one| one.slowdown),
        outcome.events,
        outcome.digest,
        outcome.findings.len()
    )
}
