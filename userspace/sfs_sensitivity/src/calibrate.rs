//! What small things cost: in a guest under each scheduler, and on this host.

use crate::measure::Plan;
use crate::points::{Machine, Point};
use anyhow::{bail, Context, Result};
use faas_trial::costs::Calibration;
use serde::{Deserialize, Serialize};
use sfs_jobs::failure::Failure;
use sfs_jobs::job::{self, Job};
use sfs_jobs::progress::Progress;
use sfs_jobs::rows;
use sfs_jobs::signals::Interrupt;
use sfs_lab::bench::rows::{servers, Server};
use sfs_lab::bench::Row;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The machine of the guest's rows that is the host itself.
pub const HOST: &str = "host";

/// Measurements in virtual time, where all are nearly the same, and on a host.
const IN_GUEST: u32 = 5;
const ON_HOST: u32 = 31;

/// The guest's task for a sched_ext scheduler: NAME and its options follow. It begins once the
/// kernel says that the scheduler is in force.
const UNDER: &str = "\"$@\" >/out/scheduler 2>&1 &
n=0
while [ \"$(cat /sys/kernel/sched_ext/state)\" != enabled ]; do
	n=$((n + 1))
	[ $n -lt 200 ] || { cat /out/scheduler >&2; echo \"$1 did not load\" >&2; exit 3; }
	sleep 0.1
done
faasbench calibrate --repetitions \"$REPETITIONS\" --json >/out/calibration.json";

/// One cost on one machine under one scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// `host`, or the guest's machine and the cost of an instruction.
    pub machine: String,
    /// The scheduler that was in force.
    pub scheduler: String,
    /// What was done.
    pub cost: String,
    /// The median, ns; empty if the scheduler did not do it.
    pub median_ns: Option<f64>,
    /// The 25th percentile, ns.
    pub q1_ns: Option<f64>,
    /// The 75th percentile, ns.
    pub q3_ns: Option<f64>,
    /// The kernel.
    pub kernel: String,
    /// The commit of the programs.
    pub commit: String,
}

/// Measures all anew, and keeps the costs in the file at `path`.
///
/// # Errors
/// If a guest or the host cannot measure, or the file cannot be written.
pub fn carry_out(
    plan: &Plan<'_>,
    machine: &'static Machine,
    path: &Path,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut costs = Vec::new();
    progress.say("calibration on this host");
    costs.extend(on_host(plan, interrupt)?);
    for (row, server) in plan.rows.iter().zip(servers(plan.tree, &plan.rows)?) {
        for shift in [0, 2] {
            progress.say(&format!(
                "calibration in a guest: {}, shift {shift}",
                row.name
            ));
            let point = Point {
                machine,
                shift,
                refill_us: 0,
            };
            costs.extend(in_guest(plan, &point, row, &server, interrupt)?);
        }
    }
    rows::write(path, &costs)
}

/// What the file at `path` has; nothing if there is none.
///
/// # Errors
/// If it cannot be read, or is no such file.
pub fn read(path: &Path) -> Result<Vec<Cost>> {
    rows::read(path)
}

fn on_host(plan: &Plan<'_>, interrupt: &Interrupt) -> Result<Vec<Cost>> {
    let mut command = job::call(plan.tree, plan.tree.program("faasbench"));
    command.args(["calibrate", "--json", "--repetitions", &ON_HOST.to_string()]);
    let output = command
        .output()
        .context("cannot run faasbench; run make first")?;
    interrupt.check()?;
    if !output.status.success() {
        bail!(
            "faasbench calibrate failed on this host: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let loaded = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
    let scheduler = match loaded.trim() {
        "" => "the kernel's own",
        other => other,
    };
    costs(plan, HOST, scheduler, kernel.trim(), &output.stdout)
}

fn in_guest(
    plan: &Plan<'_>,
    point: &Point,
    row: &Row,
    server: &Server,
    interrupt: &Interrupt,
) -> Result<Vec<Cost>> {
    let out = plan
        .out
        .join(format!("calibration-shift-{}", point.shift))
        .join(&row.name);
    let folder = plan.tree.at(&out);
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut command = plan.vm(point, server, row.scheduler(), &out)?;
    command.args([
        "--env",
        &format!("REPETITIONS={IN_GUEST}"),
        "--",
        "sh",
        "-c",
    ]);
    match server {
        Server::Program(_) => {
            command.args([
                &format!("uname -r >/out/kernel\n{UNDER}"),
                "sh",
                row.scheduler(),
            ]);
            command.args(row.args().split_whitespace());
        }
        _ => {
            let last = UNDER.lines().last().unwrap_or_default();
            command.arg(format!("uname -r >/out/kernel\n{last}"));
        }
    }
    let status = Job::start(&mut command)?.wait_and(interrupt, Duration::from_secs(1), || {})?;
    if status != 0 {
        let message = format!(
            "the calibration under {} ended with exit status {status}; {} says more",
            row.name,
            out.join("errors").display()
        );
        return Err(Failure::Vm(message).into());
    }
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let kernel = String::from_utf8_lossy(&read("kernel")?).trim().to_string();
    let machine = format!("guest, {} ns", 1 << point.shift);
    costs(
        plan,
        &machine,
        &row.name,
        &kernel,
        &read("calibration.json")?,
    )
}

/// The rows of a calibration in `json`.
fn costs(
    plan: &Plan<'_>,
    machine: &str,
    scheduler: &str,
    kernel: &str,
    json: &[u8],
) -> Result<Vec<Cost>> {
    let found: Calibration =
        serde_json::from_slice(json).context("faasbench calibrate gave no calibration")?;
    let cost = |(cost, spread): (&str, Option<faas_trial::costs::Spread>)| Cost {
        machine: machine.to_string(),
        scheduler: scheduler.to_string(),
        cost: cost.to_string(),
        median_ns: spread.map(|one| one.median),
        q1_ns: spread.map(|one| one.q1),
        q3_ns: spread.map(|one| one.q3),
        kernel: kernel.to_string(),
        commit: plan.commit.clone(),
    };
    Ok(found.rows().into_iter().map(cost).collect())
}
