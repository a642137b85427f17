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

/// The costs of an instruction in guests: 1 ns and 4 ns.
const SHIFTS: [u32; 2] = [0, 2];

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

/// Measures what has no result of this commit, and keeps each result in the file at `path` at
/// once.
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
    let mut costs = read(path)?;
    let scheduler = on_host();
    if !is_known(&costs, HOST, &scheduler, &plan.commit) {
        progress.say("calibration on this host");
        put(&mut costs, host(plan, &scheduler, interrupt)?);
        rows::write(path, &costs)?;
    }
    for (row, server) in plan.rows.iter().zip(servers(plan.tree, &plan.rows)?) {
        for shift in SHIFTS {
            if is_known(&costs, &guest(shift), &row.name, &plan.commit) {
                continue;
            }
            let name = &row.name;
            progress.say(&format!("calibration in a guest: {name}, shift {shift}"));
            let point = Point {
                machine,
                shift,
                refill_us: 0,
            };
            put(&mut costs, in_guest(plan, &point, row, &server, interrupt)?);
            rows::write(path, &costs)?;
        }
    }
    Ok(())
}

fn is_known(costs: &[Cost], machine: &str, scheduler: &str, commit: &str) -> bool {
    costs
        .iter()
        .any(|one| (&*one.machine, &*one.scheduler, &*one.commit) == (machine, scheduler, commit))
}

/// Puts the costs of a machine under a scheduler in the place of former ones.
fn put(costs: &mut Vec<Cost>, new: Vec<Cost>) {
    let is_renewed = |old: &Cost| {
        new.iter()
            .any(|one| (&one.machine, &one.scheduler) == (&old.machine, &old.scheduler))
    };
    costs.retain(|old| !is_renewed(old));
    costs.extend(new);
    // The order within a machine stays.
    costs.sort_by_key(|one| {
        (
            one.machine != HOST,
            one.machine.clone(),
            one.scheduler.clone(),
        )
    });
}

/// The name of guests in which an instruction takes 2 to the power of `shift` ns.
fn guest(shift: u32) -> String {
    format!("guest, {} ns", 1 << shift)
}

/// The scheduler that is in force on this host.
fn on_host() -> String {
    let loaded = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
    match loaded.trim() {
        "" => "the kernel's own".to_string(),
        other => other.to_string(),
    }
}

/// What the file at `path` has; nothing if there is none.
///
/// # Errors
/// If it cannot be read, or is no such file.
pub fn read(path: &Path) -> Result<Vec<Cost>> {
    rows::read(path)
}

fn host(plan: &Plan<'_>, scheduler: &str, interrupt: &Interrupt) -> Result<Vec<Cost>> {
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
    costs(
        plan,
        &guest(point.shift),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(machine: &str, scheduler: &str, cost: &str, commit: &str) -> Cost {
        Cost {
            machine: machine.into(),
            scheduler: scheduler.into(),
            cost: cost.into(),
            median_ns: Some(1.0),
            q1_ns: None,
            q3_ns: None,
            kernel: "6.18".into(),
            commit: commit.into(),
        }
    }

    #[test]
    fn new_costs_take_the_place_of_former_ones_and_the_host_is_first() {
        let mut costs = Vec::new();
        put(&mut costs, vec![cost(&guest(2), "eevdf", "pipe", "a")]);
        put(&mut costs, vec![cost(&guest(0), "eevdf", "pipe", "a")]);
        let both = |commit| ["switch", "pipe"].map(|what| cost(HOST, "eevdf", what, commit));
        put(&mut costs, both("a").to_vec());
        put(&mut costs, both("b").to_vec());
        let places: Vec<(&str, &str)> = costs
            .iter()
            .map(|one| (one.machine.as_str(), one.cost.as_str()))
            .collect();
        let want = [
            (HOST, "switch"),
            (HOST, "pipe"),
            ("guest, 1 ns", "pipe"),
            ("guest, 4 ns", "pipe"),
        ];
        assert_eq!(places, want);
        assert!(is_known(&costs, HOST, "eevdf", "b"));
        assert!(!is_known(&costs, HOST, "eevdf", "a"));
        assert!(!is_known(&costs, HOST, "scx_sfs", "b"));
    }
}
