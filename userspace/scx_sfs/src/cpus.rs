//! The CPUs that functions may use.

use anyhow::{Context, Result};
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

/// Returns how many CPUs functions may use: those in the affinity of process 1,
/// which everything that is started later inherits (a boot option or a service
/// manager's setting may narrow it), and of these the ones that are online.
///
/// # Errors
///
/// Process 1 cannot be asked, or has no CPU.
pub fn function_cpus() -> Result<u32> {
    // The kernel leaves out CPUs that are offline.
    let affinity =
        sched_getaffinity(Pid::from_raw(1)).context("cannot read the CPU affinity of process 1")?;
    let cpus = (0..CpuSet::count())
        .filter(|&cpu| affinity.is_set(cpu).unwrap_or(false))
        .count();
    anyhow::ensure!(cpus > 0, "process 1 may use no CPU");
    Ok(cpus as u32)
}
