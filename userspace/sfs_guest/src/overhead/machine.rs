//! The guest's machine: limits, CPUs, figures of the kernel, crowds, and files of figures.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use sfs_testbed::clock::{sleep, wait_until};

use super::OUT;
use crate::programs::{cpus, kill_all, set, spawn};

/// Limits that a crowd of a hundred thousand needs.
const LIMITS: [(&str, &str); 4] = [
    ("/proc/sys/kernel/pid_max", "4194304"),
    ("/proc/sys/kernel/threads-max", "2000000"),
    ("/proc/sys/vm/max_map_count", "2000000"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
];

/// Where a crowd's output goes.
const CROWD: &str = "/tmp/crowd";

/// The path of a file of figures.
pub fn out(name: &str) -> PathBuf {
    Path::new(OUT).join(name)
}

/// Leaves a file of figures.
pub fn leave(name: &str, text: &str) -> Result<()> {
    fs::write(out(name), text).with_context(|| format!("cannot write {name}"))
}

/// Runs a program whose output is a file of figures.
pub fn leave_output(name: &str, command: &mut Command) -> Result<()> {
    let file = File::create(out(name)).with_context(|| format!("cannot write {name}"))?;
    let status = spawn(command.stdout(file))?.wait()?;
    ensure!(status.success(), "no figures of {name}: {status}");
    Ok(())
}

/// Lifts the limits of the kernel on numbers of tasks and on real-time priority.
pub fn lift_limits() -> Result<()> {
    LIMITS.iter().try_for_each(|(path, value)| set(path, value))
}

/// Takes all CPUs away but the first. Tasks that may use one CPU only would have queues of
/// their own; here they may use several.
pub fn take_cpus_away() -> Result<()> {
    let count = cpus();
    ensure!(count > 1, "needs two CPUs, to take one away");
    (1..count).try_for_each(|cpu| set(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "0"))
}

/// Returns the seconds since boot, as /proc has them.
pub fn uptime() -> Result<String> {
    let text = fs::read_to_string("/proc/uptime").context("no uptime")?;
    let first = text.split_whitespace().next();
    Ok(first.context("no uptime")?.into())
}

/// Returns how many tasks want to run now, this one left out.
pub fn runnable() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat").context("no /proc/stat")?;
    let running = text
        .lines()
        .find_map(|line| line.strip_prefix("procs_running "));
    let running: u64 = running.context("no procs_running")?.trim().parse()?;
    Ok(running.saturating_sub(1))
}

/// Leaves the kernel's objects, after all that can be given back has been.
pub fn leave_slabs(name: &str) -> Result<()> {
    nix::unistd::sync();
    set("/proc/sys/vm/drop_caches", "3")?;
    sleep(Duration::from_secs(1));
    let slabs = fs::read_to_string("/proc/slabinfo").context("no slabs")?;
    leave(name, &slabs)
}

/// A crowd of sfs_crowd.
pub struct Crowd(Child);

impl Crowd {
    /// Starts one, and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let file = File::create(CROWD).context("cannot write the crowd's output")?;
        let mut command = Command::new("sfs_crowd");
        command
            .args(arguments)
            .stdout(file.try_clone()?)
            .stderr(file);
        let crowd = Self(spawn(&mut command)?);
        let said = || fs::read_to_string(CROWD).unwrap_or_default();
        let ready = wait_until(Duration::from_secs(300), || said().contains("ready"));
        ensure!(ready, "no crowd: {}", said());
        Ok(crowd)
    }

    /// Ends it, with all that it has forked.
    pub fn disperse(mut self) -> Result<()> {
        // It may have ended.
        let _ = self.0.kill();
        self.0.wait()?;
        kill_all("sfs_crowd").context("the crowd stays")
    }
}

/// Leaves the kernel's complaints.
///
/// # Errors
/// If there are any.
pub fn expect_no_complaint() -> Result<()> {
    let output = Command::new("dmesg").output().context("cannot run dmesg")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints: Vec<&str> = text.lines().filter(|line| is_complaint(line)).collect();
    let lines = complaints.iter().map(|line| format!("{line}\n"));
    leave("complaints", &lines.collect::<String>())?;
    if !complaints.is_empty() {
        let first = complaints[..complaints.len().min(3)].join("\n");
        bail!("the kernel complains: {first}");
    }
    Ok(())
}

fn is_complaint(line: &str) -> bool {
    let has_after = |mark: &str, words: [&str; 2]| {
        let after = line.split_once(mark);
        after.is_some_and(|(_, after)| words.iter().any(|word| after.contains(word)))
    };
    ["BUG", "WARNING", "soft lockup"]
        .iter()
        .any(|word| line.contains(word))
        || has_after("rcu:", ["stall", "starved"])
        || has_after("sched_ext:", ["error", "stall"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_from_other_messages() {
        for line in [
            "[1.0] BUG: soft lockup - CPU#1",
            "[1.0] rcu: INFO: rcu_sched self-detected stall on CPU",
            "[1.0] sched_ext: sfs: runnable task stall",
            "[1.0] WARNING: CPU: 0 PID: 1",
        ] {
            assert!(is_complaint(line), "{line}");
        }
        for line in [
            "[1.0] rcu: Hierarchical RCU implementation.",
            "[1.0] sched_ext: BPF scheduler \"sfs\" enabled",
            "[1.0] a stall of another kind",
        ] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
