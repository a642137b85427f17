//! Summaries: the numbers of one run.
//!
//! Definitions for the measurements of [`crate::result`], in addition to those
//! of [`crate::measure`]:
//!
//! - *percentiles* are by nearest rank: the smallest value such that at least
//!   that share of all values does not exceed it.
//! - *cpu over service* = mean of CPU time / service time, *switches* = mean of
//!   context switches; *makespan* = last end - first arrival.
//! - *CPU over CPU alone* is that of fixed work, see [`fixed`].
//! - *run-queue wait* is the time for which an invocation was runnable without
//!   running, until it completed.
//! - *arrival lag* is the time from the planned arrival of an invocation until
//!   it was forked, or its request sent. A run is *late* if the mean lag is
//!   more than 1 % of the mean turnaround of the short invocations (of all, if
//!   no short one completed): the lag is a part of each turnaround, and weighs
//!   most in the short ones.
//! - *wasted* is the time for which a CPU idled while a task waited that may
//!   run there, without stretches of less than 0.1 ms.
//! - *jitter* = interquartile range and variance, see [`groups`].
//!
//! Invocations that did not complete successfully are counted in `failed`, in
//! total and for each group, and excluded from all other numbers. If nothing
//! completed, the numbers are null. Times are milliseconds, rounded to 3
//! decimals; ratios are rounded to 4.
//!
//! A reader must expect unknown fields, and those with a default below may be
//! missing: summaries of earlier versions lack them.

pub mod fixed;
pub mod groups;
pub mod json;
pub mod machine;
pub mod refill;
pub mod series;
pub mod slice;

use crate::measure::{shortest, Measure};
use crate::result::Record;
use crate::stats::{self, mean, nearest_rank, ratio, Ms, Stats};
use crate::trace::{offered_load, Invocation, Trace};
use fixed::FixedWork;
use groups::{Function, Group, Jitter, Rte};
use machine::{Daemon, KernelSettings};
use refill::Refill;
use serde::{Deserialize, Serialize};
use series::{ByService, OverTime};
use slice::SliceLog;
use std::collections::BTreeMap;
use std::fmt;

/// The name and version of the format.
pub const SCHEMA: &str = "faasbench.summary/1";

/// Share of the short invocations' turnaround above which the arrival lag makes
/// a run late.
pub const LATE: f64 = 0.01;

/// Number of steps of [`Cdf`]: one value for each half per cent, and the first.
const CDF_STEPS: usize = 200;

/// [`Summary::accel`] of a simulation.
pub const SIMULATED: &str = "simulated";

/// The summary of one run, as in its JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The trace.
    pub trace: TraceInfo,
    /// The scheduler.
    pub scheduler: SchedulerInfo,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's tick, preemption mode and slices, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_settings: Option<KernelSettings>,
    /// The daemon that steered the invocations, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<Daemon>,
    /// How the machine's CPUs are implemented: `native`, `kvm`, `tcg`, `icount`
    /// or [`SIMULATED`].
    pub accel: String,
    /// What served the invocations, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxInfo>,
    /// From the first arrival to the last completion.
    pub makespan_ms: Option<f64>,
    /// Invocations that did not complete successfully.
    pub failed: usize,
    /// Turnaround of all invocations.
    pub turnaround_ms: Option<Stats>,
    /// Slowdown of all invocations.
    pub slowdown: Option<Stats>,
    /// Queue delay of all invocations.
    pub queue_delay_ms: Option<Stats>,
    /// Run-queue wait of the invocations for which it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runqueue_wait_ms: Option<Stats>,
    /// Run-time effectiveness.
    pub rte: Option<Rte>,
    /// The short invocations.
    pub short: Group,
    /// The long invocations.
    pub long: Group,
    /// Spread of turnaround and slowdown of all invocations.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// Context switches per invocation.
    pub switches: Option<Switches>,
    /// Mean of CPU time used / service time, over those that need CPU time.
    pub cpu_over_service: Option<f64>,
    /// What fixed work took, if any invocation did some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_work: Option<FixedWork>,
    /// The CPU time that was added at switches, if any was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill: Option<Refill>,
    /// The delay of the dispatcher, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_lag_ms: Option<Lag>,
    /// Whether that was too much, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_lag: Option<Lateness>,
    /// CPU time that idle CPUs could have given to any waiting tasks, if
    /// watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted_ms: Option<f64>,
    /// The longest stretch for which a CPU idled while a task waited, if
    /// watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wasted_ms: Option<f64>,
    /// The classes of the trace, by name, if it has any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Group>,
    /// The functions of the trace, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, Function>,
    /// The distributions, for plots.
    pub cdf: Option<Cdf>,
    /// Turnaround against service time, for plots.
    #[serde(default)]
    pub by_service: Option<ByService>,
    /// Arrivals and queue delay over time, for plots.
    #[serde(default)]
    pub over_time: Option<OverTime>,
    /// S and the mode over time, if the scheduler logged them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<SliceLog>,
}

impl Summary {
    /// Whether it is from a simulation: no kernel, and no overhead.
    pub fn is_simulated(&self) -> bool {
        self.accel == SIMULATED
    }

    /// Whether arrivals were so late that it affects the measurements: as
    /// recorded or, in summaries of earlier versions, by the same rule.
    pub fn is_late(&self) -> bool {
        if let Some(lag) = self.arrival_lag {
            return lag.late;
        }
        let base = self.short.turnaround_ms.or(self.turnaround_ms);
        let known = self.arrival_lag_ms.zip(base);
        known.is_some_and(|(lag, turnaround)| is_late(lag.mean / turnaround.mean))
    }
}

/// The replayed trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// The file's name without folder and `.csv`.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Number of invocations.
    pub invocations: usize,
    /// Number of CPUs that it was replayed on.
    pub cpus: u32,
    /// See [`offered_load`]; null if all arrive at once.
    pub offered_load: Option<f64>,
}

/// The scheduler of the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerInfo {
    /// The name of its row.
    pub name: String,
    /// Its version; the kernel's release for those of the kernel.
    pub version: String,
    /// Its arguments.
    pub args: String,
    /// Whether it was loaded throughout.
    pub status: Status,
    /// The errors; empty without any.
    pub detail: String,
}

/// The state of a scheduler during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Loaded from the first arrival to the last completion.
    Ok,
    /// It did not load: nothing was measured.
    NotLoaded,
    /// Gone before the last completion: the rest ran under EEVDF.
    Ejected,
    /// Loaded again during the replay.
    Reloaded,
    /// Measured completely, but did not exit with 0 on SIGINT.
    BadExit,
    /// The machine crashed, hung or was abandoned: there are no results.
    Lost,
}

impl fmt::Display for Status {
    /// Its name in a summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::NotLoaded => "not-loaded",
            Self::Ejected => "ejected",
            Self::Reloaded => "reloaded",
            Self::BadExit => "bad-exit",
            Self::Lost => "lost",
        })
    }
}

/// What served the invocations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// `process`, `warm` or `cgroup`, or `platform` for requests to one.
    pub kind: String,
    /// `fork` if sandboxes fork for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Sandboxes started before the replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prestarted: Option<u64>,
    /// Sandboxes started for a request because all others were busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_starts: Option<u64>,
    /// Sandboxes that ended on their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died: Option<u64>,
    /// `cpu.weight` of each sandbox's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u32>,
    /// CPU limit of each sandbox's cgroup, in per cent of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota_percent: Option<u32>,
    /// `nested` if the cgroups of a function are in a cgroup of that function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_layout: Option<String>,
}

/// Mean context switches per invocation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Switches {
    /// Because it blocked or ended.
    pub voluntary: f64,
    /// Because it was preempted.
    pub involuntary: f64,
}

/// Time from the planned arrivals until the invocations were forked, or their
/// requests sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    /// The mean.
    pub mean: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Whether the load generator was too slow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Mean lag / mean turnaround of the short invocations.
    pub of_short_turnaround: f64,
    /// Whether that is more than [`LATE`].
    pub late: bool,
}

/// Distributions, by nearest rank: the smallest value, then one value for each
/// half per cent, up to the largest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cdf {
    /// Turnaround.
    pub turnaround_ms: Vec<f64>,
    /// Slowdown.
    pub slowdown: Vec<f64>,
    /// Run-time effectiveness.
    #[serde(default)]
    pub rte: Vec<f64>,
}

/// Facts about a run in addition to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Number of CPUs that it ran on.
    pub cpus: u32,
    /// The scheduler.
    pub scheduler: SchedulerInfo,
    /// The kernel's release.
    pub kernel: String,
    /// How the machine's CPUs are implemented.
    pub accel: String,
    /// What served the invocations, if known.
    pub sandbox: Option<SandboxInfo>,
}

/// Summarises `records`, which must be those of `trace` in its order, or empty
/// if nothing could be run. `lag_ns` is the delay of each fork in nanoseconds,
/// empty if unknown.
pub fn summarise(trace: &Trace, records: &[Record], setting: &Setting, lag_ns: &[u64]) -> Summary {
    let invocations = &trace.invocations;
    let done = Measure::all(records, invocations);
    let ok: Vec<&Record> = records
        .iter()
        .filter(|one| one.completed().is_some())
        .collect();
    let short = shortest(invocations);
    let all = Group::of(invocations, &done, |_| true);
    let short_ones = Group::of(invocations, &done, |id| short[id]);
    let lag_base = short_ones.turnaround_ms.or(all.turnaround_ms);
    Summary {
        schema: SCHEMA.to_string(),
        trace: TraceInfo {
            name: trace.name.clone(),
            sha256: trace.sha256.clone(),
            invocations: invocations.len(),
            cpus: setting.cpus,
            offered_load: offered_load(invocations, setting.cpus).map(ratio),
        },
        scheduler: setting.scheduler.clone(),
        kernel: setting.kernel.clone(),
        kernel_settings: None,
        daemon: None,
        accel: setting.accel.clone(),
        sandbox: setting.sandbox.clone(),
        makespan_ms: makespan(invocations, &ok),
        failed: all.failed,
        turnaround_ms: all.turnaround_ms,
        slowdown: all.slowdown,
        queue_delay_ms: all.queue_delay_ms,
        runqueue_wait_ms: Stats::of_us(ok.iter().filter_map(|one| one.runqueue_wait_us).collect()),
        rte: all.rte,
        short: short_ones,
        long: Group::of(invocations, &done, |id| !short[id]),
        jitter: all.jitter,
        switches: switches(&ok),
        cpu_over_service: cpu_over_service(&ok),
        fixed_work: FixedWork::of(invocations, &ok),
        refill: None,
        arrival_lag_ms: lag(lag_ns),
        arrival_lag: lateness(lag_ns, lag_base),
        wasted_ms: None,
        longest_wasted_ms: None,
        classes: groups::classes(invocations, &done),
        functions: groups::functions(invocations, &done),
        cdf: cdf(&done),
        by_service: ByService::of(invocations, &done),
        over_time: OverTime::of(invocations, &done),
        slice: None,
    }
}

fn makespan(invocations: &[Invocation], ok: &[&Record]) -> Option<f64> {
    let first = invocations.first()?.arrival_us;
    let last = ok.iter().filter_map(|one| one.end_us).max()?;
    Some((last - first).ms())
}

fn switches(ok: &[&Record]) -> Option<Switches> {
    let per_invocation = |count: fn(&Record) -> u64| {
        let counts: Vec<f64> = ok.iter().map(|one| count(one) as f64).collect();
        mean(&counts).map(ratio)
    };
    Some(Switches {
        voluntary: per_invocation(|one| one.voluntary_switches)?,
        involuntary: per_invocation(|one| one.involuntary_switches)?,
    })
}

fn cpu_over_service(ok: &[&Record]) -> Option<f64> {
    let computing = ok.iter().filter(|one| one.service_us > 0);
    let ratios: Vec<f64> = computing
        .map(|one| one.cpu_us as f64 / one.service_us as f64)
        .collect();
    mean(&ratios).map(ratio)
}

fn lag(lag_ns: &[u64]) -> Option<Lag> {
    let mut sorted: Vec<f64> = lag_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    Some(Lag {
        mean: stats::round(mean(&sorted)?, 3),
        p99: stats::round(nearest_rank(&sorted, 990, 1000), 3),
        max: stats::round(nearest_rank(&sorted, 1, 1), 3),
    })
}

fn lateness(lag_ns: &[u64], turnaround_ms: Option<Stats>) -> Option<Lateness> {
    let lag_ms: Vec<f64> = lag_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
    let share = mean(&lag_ms)? / turnaround_ms?.mean;
    Some(Lateness {
        of_short_turnaround: ratio(share),
        late: is_late(share),
    })
}

/// Whether mean lag / mean turnaround of the short invocations is too much.
fn is_late(share: f64) -> bool {
    share > LATE
}

fn cdf(measures: &[Measure]) -> Option<Cdf> {
    if measures.is_empty() {
        return None;
    }
    let mut turnaround: Vec<u64> = measures.iter().map(|one| one.turnaround_us).collect();
    turnaround.sort_unstable();
    let steps = 0..=CDF_STEPS;
    let turnaround = steps.map(|step| nearest_rank(&turnaround, step, CDF_STEPS).ms());
    Some(Cdf {
        turnaround_ms: turnaround.collect(),
        slowdown: cdf_of_ratios(measures.iter().map(|one| one.slowdown).collect()),
        rte: cdf_of_ratios(measures.iter().map(Measure::rte).collect()),
    })
}

fn cdf_of_ratios(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let at = |step| ratio(nearest_rank(&values, step, CDF_STEPS));
    (0..=CDF_STEPS).map(at).collect()
}

#[cfg(test)]
mod tests;
