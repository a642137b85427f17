//! Traces of the kernel: context switches, and the dump of the scheduler.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::Pid;

use crate::process::Process;

const TRACING: &str = "/sys/kernel/tracing";

/// A trace of some kinds of events. Dropping it ends and clears the trace.
pub struct Trace {
    switches: Vec<PathBuf>,
}

impl Trace {
    /// Starts to record `events`, each as `subsystem/name`.
    ///
    /// # Errors
    ///
    /// The kernel does not have such events.
    pub fn start(events: &[&str]) -> Result<Self> {
        let path = |event: &&str| Path::new(TRACING).join("events").join(event).join("enable");
        let switches: Vec<PathBuf> = events.iter().map(path).collect();
        clear()?;
        for switch in &switches {
            fs::write(switch, "1")
                .with_context(|| format!("cannot trace: {}", switch.display()))?;
        }
        Ok(Self { switches })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        for switch in &self.switches {
            let _ = fs::write(switch, "0");
        }
        let _ = clear();
    }
}

/// Empties the trace.
///
/// # Errors
///
/// Tracing is not available.
pub fn clear() -> Result<()> {
    fs::write(format!("{TRACING}/trace"), "").context("cannot clear the trace")
}

/// Returns the trace.
///
/// # Errors
///
/// Tracing is not available.
pub fn text() -> Result<String> {
    fs::read_to_string(format!("{TRACING}/trace")).context("cannot read the trace")
}

/// One line of `sched/sched_switch`: a task leaves its CPU to another one.
pub struct Switch<'a> {
    /// Thread id of the task that leaves.
    pub from: i32,
    /// Whether it was preempted.
    pub involuntary: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Thread id of the task that gets the CPU.
    pub to: i32,
    /// Its name.
    pub to_name: &'a str,
}

/// Returns the switches in a trace.
pub fn switches(text: &str) -> impl Iterator<Item = Switch<'_>> {
    text.lines().filter_map(|line| {
        let state = field(line, "prev_state=")?;
        Some(Switch {
            from: field(line, "prev_pid=")?.parse().ok()?,
            involuntary: state.starts_with('R'),
            ended: state.starts_with(['X', 'Z']),
            to: field(line, "next_pid=")?.parse().ok()?,
            to_name: field(line, "next_comm=")?,
        })
    })
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split_whitespace().next()
}

/// Returns the preemptions of `victims` by other processes of this suite, as (victim, thief).
/// Kernel threads and the loader may preempt, and so may a task that has slept: it wakes up like
/// a daemon, for a short turn (sometimes a fork waits for a lock of the kernel, which the suite
/// cannot prevent). [`slept`] returns the processes that did.
pub fn taken_by_our_own(text: &str, victims: &[Process]) -> Vec<(i32, i32)> {
    let ours = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let mut slept = HashSet::new();
    let mut taken = Vec::new();
    for switch in switches(text) {
        if !switch.involuntary {
            slept.insert(switch.from);
        } else if switch.to_name == ours.trim()
            && !slept.contains(&switch.from)
            && !slept.contains(&switch.to)
            && victims.iter().any(|one| one.pid().as_raw() == switch.from)
        {
            taken.push((switch.from, switch.to));
        }
    }
    taken
}

/// Returns those of `processes` that slept or waited for a lock of the kernel.
pub fn slept(text: &str, processes: &[Process]) -> Vec<i32> {
    let is_sleep = |switch: &Switch| !switch.involuntary && !switch.ended;
    let slept: HashSet<i32> = switches(text)
        .filter(is_sleep)
        .map(|switch| switch.from)
        .collect();
    processes
        .iter()
        .map(|one| one.pid().as_raw())
        .filter(|pid| slept.contains(pid))
        .collect()
}

/// Returns when the task `pid` first got a CPU, from a trace of `sched/sched_switch`.
pub fn first_run(text: &str, pid: Pid) -> Option<Duration> {
    time_of(text, "sched_switch: ", "next_pid=", pid)
}

/// Returns the time from the wake-up of the new task `pid` until it first got a CPU. Also needs
/// a trace of `sched/sched_wakeup_new`.
pub fn first_run_delay(text: &str, pid: Pid) -> Option<Duration> {
    let woken = time_of(text, "sched_wakeup_new: ", "pid=", pid)?;
    first_run(text, pid)?.checked_sub(woken)
}

/// Returns the time of the first `event` whose field `name` is `pid`.
fn time_of(text: &str, event: &str, name: &str, pid: Pid) -> Option<Duration> {
    let pid = pid.to_string();
    let line = text
        .lines()
        .find(|line| line.contains(event) && field(line, name) == Some(&pid))?;
    let time = line.split_once(event)?.0.split_whitespace().last()?;
    let seconds = time.trim_end_matches(':').parse().ok()?;
    Some(Duration::from_secs_f64(seconds))
}
