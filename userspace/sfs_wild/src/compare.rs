//! Replays a workload, and compares.

use crate::workload::Workload;
use anyhow::{Context, Result};
use faas_data::summary::Summary;
use faas_data::trace::to_csv;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_lab::bench::args::VmArgs;
use sfs_lab::bench::settings::Machine;
use sfs_lab::bench::{self, Row, Settings, Source};
use std::fs;
use std::path::Path;

/// Live and simulated rows. What the policy gains in simulation is scx_sfs's share of what
/// processor sharing has there.
const ROWS: [&str; 4] = ["eevdf", "scx_sfs", "ps", "learned"];

/// The figures of scx_sfs over EEVDF's, both live; less is better for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The seed of the workload, and of the machine.
    pub seed: u64,
    /// The workload in a few words.
    pub about: String,
    /// Mean of turnaround over service time.
    pub slowdown: f64,
    /// The same in simulation, over processor sharing's.
    pub simulated: f64,
    /// The 99th percentile of slowdown.
    pub tail_slowdown: f64,
    /// Mean turnaround.
    pub mean: f64,
    /// The 99.9th percentile of turnaround.
    pub tail: f64,
    /// Latest arrival, ms, under EEVDF and under scx_sfs: how late its process was started.
    pub late_ms: [f64; 2],
    /// What else is to be said: a scheduler that did not stay, or invocations that failed.
    pub remark: String,
}

/// Replays the workload of `seed` in `out`, as far as there is no result yet, and compares.
///
/// # Errors
/// If the trace cannot be written, or as of [`bench::measure`].
pub fn compare(
    tree: &Tree,
    (seed, workload): (u64, &Workload),
    out: &Path,
    vms: &VmArgs,
    (progress, interrupt): (&Progress, &Interrupt),
) -> Result<Comparison> {
    let out = out.join(format!("seed-{seed}"));
    let folder = tree.at(&out);
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let trace = out.join("wild.trace.csv");
    fs::write(tree.at(&trace), to_csv(&workload.trace))
        .with_context(|| format!("cannot write {}", trace.display()))?;
    let row = |name: &&str| Row::with_settings(name, |variable| std::env::var_os(variable));
    let mut settings = Settings::new(ROWS.iter().map(row).collect(), Source::File(trace));
    (settings.sandbox, settings.cpus) = (workload.sandbox, workload.cpus);
    settings.sandbox_args = workload.options.into();
    settings.out = out;
    vms.apply(&mut settings);
    let machine = vms.perturb.unwrap_or(Machine::Seed);
    settings.machine = Machine::One(machine.of(seed));
    let (folder, troubles) = bench::measure(tree, &settings, interrupt, progress)?;
    let summary = |name: &str| -> Result<Summary> {
        let path = tree.at(folder.result(name, "json"));
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("{} is no summary", path.display()))
    };
    let [base, own, ps, learned] = ROWS.map(summary);
    Ok(of_summaries(
        (seed, workload),
        (&base?, &own?, &ps?, &learned?),
        troubles.join("; "),
    ))
}

fn of_summaries(
    (seed, workload): (u64, &Workload),
    (base, own, ps, learned): (&Summary, &Summary, &Summary, &Summary),
    remark: String,
) -> Comparison {
    let slowdown = |one: &Summary| one.slowdown.as_ref().map_or(f64::NAN, |all| all.mean);
    let tail_slowdown = |one: &Summary| one.slowdown.as_ref().map_or(f64::NAN, |all| all.p99);
    let mean = |one: &Summary| one.turnaround_ms.as_ref().map_or(f64::NAN, |all| all.mean);
    let tail = |one: &Summary| one.turnaround_ms.as_ref().map_or(f64::NAN, |all| all.p999);
    let late = |one: &Summary| one.arrival_lag_ms.as_ref().map_or(f64::NAN, |lag| lag.max);
    Comparison {
        seed,
        about: workload.about.clone(),
        slowdown: slowdown(own) / slowdown(base),
        simulated: slowdown(learned) / slowdown(ps),
        tail_slowdown: tail_slowdown(own) / tail_slowdown(base),
        mean: mean(own) / mean(base),
        tail: tail(own) / tail(base),
        late_ms: [late(base), late(own)],
        remark,
    }
}
