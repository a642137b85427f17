//! Processes under test: forked from the case without exec, as a fork is enough for an
//! invocation.

use std::fs;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{fork, ForkResult, Pid};

use crate::cgroup::Cgroup;
use crate::clock::{now, sleep_until, wait_until, PATIENCE};
use crate::report::{Report, SharedReport};

/// A child and its report. Dropping it ends the child.
pub struct Process {
    pid: Pid,
    forked: Duration,
    report: SharedReport,
    status: Option<WaitStatus>,
}

impl Process {
    /// Forks a child that does `work`.
    ///
    /// # Errors
    ///
    /// The process cannot be forked.
    pub fn spawn(work: impl FnOnce(&Report)) -> Result<Self> {
        let report = SharedReport::new()?;
        let forked = now();
        // SAFETY: a case has a single thread, so the child may do whatever its parent may.
        match unsafe { fork() }.context("cannot fork")? {
            ForkResult::Child => run_child(&report, work),
            ForkResult::Parent { child } => Ok(Self {
                pid: child,
                forked,
                report,
                status: None,
            }),
        }
    }

    /// Forks a child directly into `group`, where it does `work`.
    ///
    /// # Errors
    ///
    /// The process cannot be forked, or not into this group.
    pub fn spawn_in(group: &Cgroup, work: impl FnOnce(&Report)) -> Result<Self> {
        let report = SharedReport::new()?;
        let forked = now();
        match clone_into(group)? {
            None => run_child(&report, work),
            Some(pid) => Ok(Self {
                pid,
                forked,
                report,
                status: None,
            }),
        }
    }

    /// Forks a child that burns `demand` of CPU time.
    ///
    /// # Errors
    ///
    /// The process cannot be forked.
    pub fn burner(demand: Duration) -> Result<Self> {
        Self::spawn(|report| report.burn(demand))
    }

    /// Forks a child that burns CPU time until it is killed.
    ///
    /// # Errors
    ///
    /// The process cannot be forked.
    pub fn hog() -> Result<Self> {
        Self::burner(Duration::MAX)
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the time from the fork to the child's first instruction; the maximum before.
    pub fn start_delay(&self) -> Duration {
        self.started().map_or(Duration::MAX, |at| at - self.forked)
    }

    /// Returns the time from the fork to the end of the work; the maximum before.
    pub fn turnaround(&self) -> Duration {
        self.ended().map_or(Duration::MAX, |at| at - self.forked)
    }

    /// Waits until the child ends by itself, for at most [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// It does not end, or it fails.
    pub fn wait(&mut self) -> Result<()> {
        let pid = self.pid;
        if wait_until(PATIENCE, || self.has_ended()) {
            return match self.status {
                Some(WaitStatus::Exited(_, 0)) => Ok(()),
                status => bail!("process {pid} has failed: {status:?}"),
            };
        }
        bail!("process {pid} has not ended after {PATIENCE:?}")
    }

    /// Waits for the child's end in the kernel: the ending child itself wakes the caller up.
    ///
    /// # Errors
    ///
    /// There is no such child.
    pub fn wait_for_its_signal(&mut self) -> Result<()> {
        self.status = Some(waitpid(self.pid, None).context("cannot wait")?);
        Ok(())
    }

    /// Returns whether the child has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(_) => {}
                Ok(status) => self.status = Some(status),
            }
        }
        self.status.is_some()
    }
}

/// Forks a child into `group` by clone3(2). Returns its process id, or `None` in the child.
fn clone_into(group: &Cgroup) -> Result<Option<Pid>> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000; // linux/sched.h
    let folder = group.open()?;
    // SAFETY: zeroes are valid for all fields.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = u64::try_from(folder.as_raw_fd())?;
    let size = size_of::<libc::clone_args>();
    // SAFETY: `size` is the length of `arguments`; a case has a single thread, so the child may
    // do whatever its parent may.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    ensure!(
        pid >= 0,
        "cannot clone into a cgroup: {}",
        std::io::Error::last_os_error()
    );
    Ok((pid > 0).then_some(Pid::from_raw(i32::try_from(pid)?)))
}

/// Runs `work` in a child and ends it: it must not return into the case that forked it.
fn run_child(report: &Report, work: impl FnOnce(&Report)) -> ! {
    report.start();
    let result = catch_unwind(AssertUnwindSafe(|| work(report)));
    report.end();
    // SAFETY: ends the process without writing output that the parent has buffered.
    unsafe { libc::_exit(if result.is_ok() { 0 } else { 101 }) }
}

impl Deref for Process {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.report.stop();
        if !self.has_ended() {
            let _ = kill(self.pid, Signal::SIGKILL);
            let _ = waitpid(self.pid, None);
        }
    }
}

/// Waits until all processes end by themselves.
///
/// # Errors
///
/// One does not, or fails.
pub fn wait_for_all(processes: &mut [Process]) -> Result<()> {
    processes.iter_mut().try_for_each(Process::wait)
}

/// Forks `count` processes that do `work`, at once: the caller is a real-time process meanwhile,
/// which they cannot delay.
///
/// # Errors
///
/// A process cannot be forked.
pub fn fork_together(count: usize, work: impl Fn(&Report)) -> Result<Vec<Process>> {
    as_real_time(|| (0..count).map(|_| Process::spawn(&work)).collect())
}

/// Forks `count` burners at once; see [`fork_together`].
///
/// # Errors
///
/// A process cannot be forked.
pub fn fork_burst(count: usize, demand: Duration) -> Result<Vec<Process>> {
    fork_together(count, |report| report.burn(demand))
}

/// Forks `count` burners that begin when all exist, one every 100 us. (With CPUs emulated in
/// turn, a fork takes some ms of all CPUs' instructions: one burner would end before the next
/// exists.) Call it as a real-time process.
///
/// # Errors
///
/// A process cannot be forked.
pub fn begin_together(count: usize, demand: Duration) -> Result<Vec<Process>> {
    let start = now() + Duration::from_millis(4) * u32::try_from(count)?;
    (0..u32::try_from(count)?)
        .map(|i| {
            Process::spawn(|report| {
                sleep_until(start + i * Duration::from_micros(100));
                report.burn(demand);
            })
        })
        .collect()
}

/// Forks `count` processes that do nothing, one exactly every `interval`, and waits for them.
///
/// # Errors
///
/// A process cannot be forked.
pub fn fork_every(interval: Duration, count: u32) -> Result<()> {
    let mut processes: Vec<Process> = as_real_time(|| {
        let start = now();
        let due = |i| start + i * interval;
        (0..count)
            .map(|i| {
                sleep_until(due(i));
                Process::spawn(|_| {})
            })
            .collect()
    })?;
    wait_for_all(&mut processes)
}

/// Returns the CPU on which `pid` runs or last ran.
///
/// # Errors
///
/// It has ended.
pub fn cpu_of(pid: Pid) -> Result<usize> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Field 39, "processor" (proc_pid_stat(5)); field 2, the name, may contain blanks.
    let fields = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace());
    let cpu = fields.and_then(|mut fields| fields.nth(36));
    Ok(cpu.context("/proc has no such field")?.parse()?)
}

/// Returns the CPU time used by the threads of `pid`, those that have ended left out.
///
/// # Errors
///
/// It has ended.
pub fn cpu_time_of(pid: Pid) -> Result<Duration> {
    let mut used = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let ns = text.split_whitespace().next();
        used += ns.context("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(used))
}

/// Returns how often `pid` got a CPU.
///
/// # Errors
///
/// It has ended.
pub fn turns_of(pid: Pid) -> Result<u64> {
    // CPU time, waiting time, turns (Documentation/scheduler/sched-stats.rst).
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let turns = schedstat.split_whitespace().nth(2);
    Ok(turns.context("/proc has no such field")?.parse()?)
}

/// Returns the kernel thread of this name.
///
/// # Errors
///
/// There is none.
pub fn kernel_thread(name: &str) -> Result<Pid> {
    let named = |pid: &Pid| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .find(named)
        .with_context(|| format!("there is no kernel thread {name}"))
}

/// Does `work` with real-time priority, so that no load delays it.
///
/// # Errors
///
/// The error of `work`, or the kernel refuses.
pub fn as_real_time<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let me = Pid::from_raw(0);
    set_policy(me, libc::SCHED_FIFO)?;
    let result = work();
    set_policy(me, libc::SCHED_OTHER)?;
    result
}

/// Starts a chain of invocations: each burns `demand`, forks the next one, and ends. Dropping it
/// ends the chain.
///
/// # Errors
///
/// The process cannot be forked.
pub fn chain(demand: Duration) -> Result<Process> {
    Process::spawn(|report| run_chain(report, demand))
}

/// Starts a chain whose invocations are all pinned to `cpu`.
///
/// # Errors
///
/// The process cannot be forked.
pub fn chain_on(cpu: usize, demand: Duration) -> Result<Process> {
    Process::spawn(|report| {
        pin_self(cpu);
        run_chain(report, demand);
    })
}

/// Runs a chain of invocations in the calling process and its children, until the report says to
/// stop; see [`chain`].
pub fn run_chain(report: &Report, demand: Duration) {
    while !report.is_stopped() {
        report.burn(demand);
        // SAFETY: the process has a single thread.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => {}
            _ => return,
        }
    }
}

/// Confines `pid` (0: the caller) to `cpus`.
///
/// # Errors
///
/// The kernel refuses.
pub fn confine(pid: Pid, cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).context("no such CPU")?;
    }
    sched_setaffinity(pid, &set).with_context(|| format!("cannot confine {pid} to {cpus:?}"))
}

/// Confines the calling process to `cpu`, and panics if it cannot.
#[allow(clippy::expect_used, reason = "for children, which fail by a panic")]
pub fn pin_self(cpu: usize) {
    confine(Pid::from_raw(0), &[cpu]).expect("cannot be pinned");
}

/// The kernel's number for the policy of sched_ext tasks.
pub const SCHED_EXT: i32 = 7;

/// Sets the scheduling policy of `pid` (0: the caller), with priority 1 for real-time policies.
/// Its children start with SCHED_OTHER.
///
/// # Errors
///
/// The kernel refuses.
pub fn set_policy(pid: Pid, policy: i32) -> Result<()> {
    let real_time = policy == libc::SCHED_FIFO || policy == libc::SCHED_RR;
    let parameter = libc::sched_param {
        sched_priority: real_time.into(),
    };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` outlives the call.
    let result = unsafe { libc::sched_setscheduler(pid.as_raw(), policy, &raw const parameter) };
    ensure!(
        result == 0,
        "cannot set policy {policy} of {pid}: {}",
        std::io::Error::last_os_error()
    );
    Ok(())
}

/// Sets the nice value of `pid`.
///
/// # Errors
///
/// The kernel refuses.
pub fn set_nice(pid: Pid, nice: i32) -> Result<()> {
    // SAFETY: takes plain numbers only.
    let result =
        unsafe { libc::setpriority(libc::PRIO_PROCESS, pid.as_raw().unsigned_abs(), nice) };
    ensure!(result == 0, "cannot set the nice value of {pid}");
    Ok(())
}
