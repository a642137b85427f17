//! The CPUs that this process may use.

use nix::errno::Errno;
use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::unistd::Pid;

/// Their numbers, in ascending order.
///
/// # Errors
/// If the kernel does not tell, as where it has more CPUs than a [`CpuSet`].
pub fn usable() -> Result<Vec<usize>, Errno> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let is_set = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_set).collect())
}

/// Restricts the calling thread, and what it starts, to these CPUs.
///
/// # Errors
/// If there is no such CPU, or the kernel refuses.
pub fn confine(cpus: &[usize]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu))?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
