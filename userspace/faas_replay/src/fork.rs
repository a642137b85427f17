//! New processes, by the bare system calls.

use nix::errno::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Flag of clone3, from the kernel's linux/sched.h.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Forks: 0 in the child, its process id in the parent.
///
/// The C library's `fork` does more in the child, and every page that it
/// touches there is a page fault. Measured on emulated CPUs, the child starts
/// 200 us later and has used twice the CPU time by its exit. Our children do
/// not use what it updates (locks of other threads, the cached thread id).
///
/// A child that shares our memory (`CLONE_VM`) would start sooner still. But a
/// function has its own address space, and switching between address spaces is
/// part of the cost of a scheduler that switches often.
///
/// The caller must have a single thread, and its child must end without
/// unwinding into the parent's frames.
///
/// # Errors
/// Like fork.
pub fn fork() -> Result<libc::pid_t, Errno> {
    let flags = libc::c_long::from(libc::SIGCHLD);
    let zero: libc::c_long = 0;
    // SAFETY: without a stack of its own the child continues in a copy of ours,
    // as with fork. This process has a single thread, so nothing that the
    // child uses can be locked or half changed; it exits without unwinding.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) };
    Errno::result(pid).map(|pid| pid as libc::pid_t)
}

/// Forks as [`fork`], into the cgroup whose folder is open as `cgroup`.
///
/// # Errors
/// Like fork; ENOSYS or EINVAL on a kernel before 5.7.
pub fn fork_into(cgroup: BorrowedFd<'_>) -> Result<libc::pid_t, Errno> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = cgroup.as_raw_fd() as u64;
    // SAFETY: as in `fork`; the arguments are alive and of the size given.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of_val(&args)) };
    Errno::result(pid).map(|pid| pid as libc::pid_t)
}
