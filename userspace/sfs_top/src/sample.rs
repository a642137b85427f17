//! What is known of the machine and its scheduler at one moment: the data of all views, and of
//! `--json`.

use serde::Serialize;
use sfs_statistics::{FunctionReport, Metrics};

/// One look at everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Time of the look, in seconds since 1970.
    pub time_s: f64,
    /// The scheduler; None: none answers.
    pub scheduler: Option<Scheduler>,
    /// Why none answers.
    pub missing: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The sandboxes; None: without `--cgroup`, or without a scheduler.
    pub sandboxes: Option<Sandboxes>,
    /// Wasted CPU time; None: nobody watches, or the watch has just begun.
    pub waste: Option<Waste>,
}

/// The scheduler's own account.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Scheduler {
    /// Its process id.
    pub pid: Option<u64>,
    /// Its statistics. Counters are of the last `interval_s`.
    pub metrics: Metrics,
    /// Time in which the counters have grown, in seconds; in the first look it is the time since
    /// load.
    pub interval_s: f64,
    /// The functions with the most work.
    pub functions: Vec<FunctionReport>,
}

impl Scheduler {
    /// Returns a counter's growth per second; 0 as long as no time has passed.
    pub fn rate(&self, count: u64) -> f64 {
        if self.interval_s > 0.0 {
            count as f64 / self.interval_s
        } else {
            0.0
        }
    }
}

/// The machine, by the files of `/proc`. Files that are not there leave their values out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Number of CPUs online.
    pub cpus: u64,
    /// Share (0 to 1) of the CPUs' time in which they were not idle, since the last look.
    pub busy_share: Option<f64>,
    /// Load averages of 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Threads that run or wait for a CPU now.
    pub runnable: Option<u64>,
    /// Share (0 to 1) of the time, since the last look, in which a task waited for a CPU.
    pub pressure_share: Option<f64>,
}

/// The sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sandboxes {
    /// Each of them, in the order of their paths.
    pub list: Vec<Sandbox>,
    /// Whether there are more, which were not looked at.
    pub more: bool,
}

/// One sandbox, by the files of its cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sandbox {
    /// Path of its cgroup, below /sys/fs/cgroup.
    pub cgroup: String,
    /// The function that it serves.
    pub function: Option<String>,
    /// CPUs that it used since the last look: 1 is one CPU all the time.
    pub cpus_used: Option<f64>,
    /// Share (0 to 1) of the CPU time of all sandboxes since the last look.
    pub share: Option<f64>,
    /// CPU time that it has used since it was made, in seconds.
    pub cpu_s: f64,
    /// Share (0 to 1) of the time, since the last look, in which one of its tasks waited for a
    /// CPU.
    pub pressure_share: Option<f64>,
    /// Tasks in it; with the controller for pids those in cgroups below it count as well.
    pub tasks: Option<u64>,
    /// `cpu.weight`; None without the CPU controller.
    pub weight: Option<u64>,
    /// `cpu.max` in CPUs; None: no quota.
    pub quota_cpus: Option<f64>,
}

/// CPU time that idle CPUs could have given to waiting tasks, since the last look.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Waste {
    /// That time, in ms.
    pub wasted_ms: f64,
    /// The longest stretch, in ms.
    pub longest_ms: f64,
    /// The watched time, in ms.
    pub watched_ms: f64,
    /// Events that did not fit into the memory for them; if any, the times are too small.
    pub lost_events: u64,
    /// The longest stretch in words.
    pub longest: Option<String>,
}

impl Waste {
    /// Returns the wasted time per second, in ms.
    pub fn rate_ms(&self) -> f64 {
        if self.watched_ms > 0.0 {
            self.wasted_ms * 1000.0 / self.watched_ms
        } else {
            0.0
        }
    }
}
