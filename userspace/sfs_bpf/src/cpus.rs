//! The CPUs that functions may use.

use anyhow::{Context, Result};
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

/// Returns the number of CPUs that functions may use: the online CPUs in the affinity of
/// process 1, which all later processes inherit. A boot option or a setting of the service
/// manager may narrow it.
///
/// # Errors
///
/// The affinity of process 1 cannot be read, or contains no CPU.
pub fn function_cpus() -> Result<u32> {
    // The kernel leaves out offline CPUs.
    let affinity =
        sched_getaffinity(Pid::from_raw(1)).context("cannot read the CPU affinity of process 1")?;
    let cpus = (0..CpuSet::count())
        .filter(|&cpu| affinity.is_set(cpu).unwrap_or(false))
        .count();
    anyhow::ensure!(cpus > 0, "process 1 may use no CPU");
    Ok(cpus as u32)
}
