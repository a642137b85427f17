//! What a summary says about the kernel's own scheduler, and about a daemon that steers it.

use serde::{Deserialize, Serialize};

/// The settings of the kernel's own scheduler during a run, read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSettings {
    /// Ticks a second, from the kernel's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// The preemption mode: `none`, `voluntary`, `full` or `lazy`; that in force if the kernel
    /// can change it, otherwise that of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// EEVDF's base slice, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_slice_ns: Option<u64>,
    /// The slice that each function process was given, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_slice_ns: Option<u64>,
    /// CFS's period in which each task runs once, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// CFS's shortest slice, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_granularity_ns: Option<u64>,
    /// By how much a task must lag behind to be preempted by one that CFS wakes up, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakeup_granularity_ns: Option<u64>,
}

/// What a daemon did and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Daemon {
    /// CPU time that it has used, in ms. It used the same CPUs as the invocations.
    pub cpu_ms: f64,
    /// Processes that it has taken for invocations.
    pub invocations: u64,
    /// Times that it has looked at a process.
    pub looks: u64,
    /// Times that it has changed the scheduling class of a process.
    pub moves: u64,
    /// Times that the kernel had to drop reports of new processes.
    pub lost: u64,
}
