//! CPU time of the loader and the programs while functions come and go.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use nix::unistd::Pid;
use sfs_testbed::clock::{ms, sleep};
use sfs_testbed::process::cpu_time_of;

use super::machine::{leave, leave_output, out, uptime};
use super::{load, usual, OUT};
use crate::loader::is_enabled;
use crate::programs::{processes, set, spawn};

/// For how long threads arrive.
const SECONDS: &str = "10";

/// With each policy, and with a hundred functions.
pub fn loaders(rate: u32, options: &str) -> Result<()> {
    loader("sfs", rate, "1", &format!("{options} --policy sfs"))?;
    let learned = format!("{options} --policy learned");
    loader("learned", rate, "1", &learned)?;
    loader("learned100", rate, "100", &learned)
}

/// Leaves the loader's CPU time and the uptime before and after in NAME, what has arrived in
/// NAME.said, and what the scheduler has seen of it in NAME.stats.
fn loader(name: &str, rate: u32, functions: &str, options: &str) -> Result<()> {
    let loader = load(&format!("--unit thread {options}"))?;
    sleep(Duration::from_secs(2));
    let mut arrivals = Command::new("sfs_crowd");
    arrivals
        .args(["arrivals", "--rate", &rate.to_string()])
        .args(["--seconds", SECONDS, "--functions", functions]);
    let mut lines = vec![used(loader.pid())?, uptime()?];
    leave_output(&format!("{name}.said"), &mut arrivals)?;
    lines.extend([uptime()?, used(loader.pid())?]);
    leave(name, &(lines.join("\n") + "\n"))?;
    let stats = File::create(out(&format!("{name}.stats")))?;
    let mut monitor = Command::new("timeout");
    monitor.args(["2", "scx_sfs", "--monitor", "1"]);
    // It ends by its time limit.
    spawn(monitor.stdout(stats.try_clone()?).stderr(stats))?.wait()?;
    loader.unload()
}

/// The CPU time of a process in ns.
fn used(pid: Pid) -> Result<String> {
    Ok(cpu_time_of(pid)?.as_nanos().to_string())
}

/// Replays a workload. faasbench loads the scheduler; while it is loaded, what the programs
/// and the loader have used so far is left twice a second.
pub fn trace(cpus: usize, sandbox: &str, options: &[String]) -> Result<()> {
    set("/proc/sys/kernel/bpf_stats_enabled", "1")?;
    let said = File::create(out("said")).context("cannot write to /out")?;
    let mut faasbench = usual("faasbench");
    faasbench
        .args(["run", "--trace", "/trace.csv", "--scheduler", "scx_sfs"])
        .args(["--cpus", &cpus.to_string(), "--out", OUT])
        .args(["--sandbox", sandbox])
        .args(options)
        .stdout(said.try_clone()?)
        .stderr(said);
    let mut run = spawn(&mut faasbench)?;
    let status = loop {
        if let Some(status) = run.try_wait()? {
            break status;
        }
        sleep(ms(500));
        leave_so_far()?;
    };
    if !status.success() {
        let said = fs::read_to_string(out("said")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        bail!(
            "faasbench: {}",
            lines[lines.len().saturating_sub(3)..].join("\n")
        );
    }
    Ok(())
}

/// Leaves what has been used so far, if the scheduler is loaded; the first time as the start
/// too.
fn leave_so_far() -> Result<()> {
    let Some(pid) = processes("scx_sfs")
        .first()
        .copied()
        .filter(|_| is_enabled())
    else {
        return Ok(());
    };
    let shown = Command::new("bpftool")
        .args(["prog", "show"])
        .stderr(Stdio::null())
        .output()?;
    let programs = String::from_utf8_lossy(&shown.stdout);
    // It may be unloaded at any time.
    let (true, Ok(loader)) = (programs.contains("sfs_dispatch"), used(pid)) else {
        return Ok(());
    };
    let uptime = uptime()? + "\n";
    let loader = loader + "\n";
    leave("progs", &programs)?;
    for end in ["", ".0"] {
        if end.is_empty() || !out("uptime.0").exists() {
            leave(&format!("loader{end}"), &loader)?;
            leave(&format!("uptime{end}"), &uptime)?;
        }
    }
    Ok(())
}
