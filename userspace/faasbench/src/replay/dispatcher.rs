//! The process that starts every invocation at its arrival.
//!
//! It runs under SCHED_FIFO above everything that is measured, sleeps to
//! absolute times, and collects ended children only while the next arrival is
//! still away: collecting late distorts nothing, since children write their
//! own times and the kernel keeps their accounts.
//!
//! One thing can still delay it: where the children are real-time tasks as
//! well, the kernel's fair server gives ordinary tasks that starve up to 50 ms
//! of each second, above every SCHED_FIFO priority. A busy background task then
//! shows in the summary's `arrival_lag_ms`.

use super::board::{Board, State, Usage};
use super::child;
use super::clock::{monotonic_ns, sleep_until};
use super::realtime::{become_dispatcher, ChildPolicy, HOW_TO_PERMIT};
use crate::trace::Phase;
use nix::errno::Errno;
use nix::sched::CpuSet;
use nix::unistd::Pid;
use std::os::fd::{BorrowedFd, RawFd};
use std::process::ExitCode;

/// Time between the dispatcher's start and the trace's start, so that its own
/// start-up disturbs nothing.
const LEAD_NS: u64 = 200_000_000;

/// Collecting one child must be over this long before the next arrival.
const MARGIN_NS: u64 = 300_000;

/// How often a fork is tried, and how long to wait in between, while the
/// kernel says that it has no room for another process.
const TRIES: u32 = 10;
const PAUSE_NS: u64 = 1_000_000;

// Steps that can fail, for the board.
const STEP_REALTIME: u64 = 1;
const STEP_PIN: u64 = 2;
const STEP_POLICY: u64 = 3;
const STEP_WAIT: u64 = 4;

/// What a dispatcher's error on the board means, in one sentence.
pub fn explain(error: u64) -> Option<String> {
    let errno = Errno::from_raw(error as i32);
    Some(match error >> 32 {
        0 => return None,
        STEP_REALTIME => format!("{HOW_TO_PERMIT} ({errno})"),
        STEP_PIN => format!("cannot restrict the children to the first CPUs: {errno}"),
        STEP_POLICY => format!("cannot set the scheduling policy of the children: {errno}"),
        _ => format!("cannot wait for the children: {errno}"),
    })
}

/// Runs the dispatcher on the board in the open file `board`, which the
/// supervisor handed down. Returns its exit code.
pub fn main(board: &str) -> ExitCode {
    let Some(fd) = board.parse::<RawFd>().ok().filter(|fd| *fd > 2) else {
        return ExitCode::from(2);
    };
    // SAFETY: the supervisor left this file open for us; if it did not, the
    // calls on it fail. Nothing in this process closes it.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let Ok(board) = Board::open(file) else {
        return ExitCode::from(2);
    };
    match dispatch(&board) {
        Ok(()) => ExitCode::SUCCESS,
        Err((step, errno)) => {
            board.set_error(step << 32 | errno as u64);
            ExitCode::FAILURE
        }
    }
}

fn dispatch(board: &Board) -> Result<(), (u64, Errno)> {
    pin(board.pin()).map_err(|errno| (STEP_PIN, errno))?;
    become_dispatcher().map_err(|errno| (STEP_REALTIME, errno))?;
    let origin = monotonic_ns() + LEAD_NS;
    board.set_origin_ns(origin);
    let mut dispatcher = Dispatcher {
        board,
        policy: board.policy().ok_or((STEP_POLICY, Errno::EINVAL))?,
        live: Vec::with_capacity(1024),
        phases: Vec::with_capacity(16),
    };
    for id in 0..board.len() {
        let arrival = origin + board.slot(id).arrival_ns();
        dispatcher.collect_before(arrival)?;
        sleep_until(arrival);
        dispatcher.start(id)?;
    }
    while !dispatcher.live.is_empty() {
        dispatcher.collect(0)?;
    }
    Ok(())
}

/// Restricts this process, and what it forks, to the first `cpus` of the CPUs
/// that it may use; 0 is no restriction.
fn pin(cpus: u32) -> Result<(), Errno> {
    if cpus == 0 {
        return Ok(());
    }
    let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0))?;
    let mut first = CpuSet::new();
    let mut missing = cpus;
    for cpu in 0..CpuSet::count() {
        if missing > 0 && allowed.is_set(cpu)? {
            first.set(cpu)?;
            missing -= 1;
        }
    }
    nix::sched::sched_setaffinity(Pid::from_raw(0), &first)
}

struct Dispatcher<'a> {
    board: &'a Board,
    policy: ChildPolicy,
    /// Children that are not collected yet, and their invocations.
    live: Vec<(libc::pid_t, usize)>,
    /// The phases of the next child: it finds them in its copy of our stack
    /// and heap, without a page fault on the board.
    phases: Vec<Phase>,
}

impl Dispatcher<'_> {
    /// Starts invocation `id`.
    fn start(&mut self, id: usize) -> Result<(), (u64, Errno)> {
        let slot = self.board.slot(id);
        self.phases.clear();
        slot.phases(&mut self.phases);
        match self.fork(id) {
            Ok(pid) => {
                self.live.push((pid, id));
                let set = self.policy.apply(pid);
                set.map_err(|errno| (STEP_POLICY, errno))
            }
            Err(errno) => {
                slot.finish(State::NotForked(errno as u32), &Usage::default());
                Ok(())
            }
        }
    }

    /// Forks the child of `id`, collecting ended ones to make room if need be.
    fn fork(&mut self, id: usize) -> Result<libc::pid_t, Errno> {
        let slot = self.board.slot(id);
        let mut outcome = Err(Errno::EAGAIN);
        for attempt in 0..TRIES {
            if attempt > 0 {
                while let Ok(true) = self.collect(libc::WNOHANG) {}
                sleep_until(monotonic_ns() + PAUSE_NS);
            }
            slot.set_forked_ns(monotonic_ns());
            outcome = fork();
            match outcome {
                Ok(0) => child::serve(slot, &self.phases),
                Err(Errno::EAGAIN | Errno::ENOMEM) => {}
                _ => return outcome,
            }
        }
        slot.set_forked_ns(0);
        outcome
    }

    /// Collects ended children while `deadline` is not near.
    fn collect_before(&mut self, deadline: u64) -> Result<(), (u64, Errno)> {
        while monotonic_ns() + MARGIN_NS < deadline {
            if !self.collect(libc::WNOHANG)? {
                break;
            }
        }
        Ok(())
    }

    /// Collects one ended child; with WNOHANG, says whether there was one.
    fn collect(&mut self, options: i32) -> Result<bool, (u64, Errno)> {
        match wait4(options) {
            Ok(None) | Err(Errno::ECHILD) if self.live.is_empty() => Ok(false),
            Ok(None) | Err(Errno::EINTR) => Ok(false),
            Ok(Some((pid, state, usage))) => {
                if let Some(at) = self.live.iter().position(|(live, _)| *live == pid) {
                    let (_, id) = self.live.swap_remove(at);
                    self.board.slot(id).finish(state, &usage);
                }
                Ok(true)
            }
            Err(errno) => Err((STEP_WAIT, errno)),
        }
    }
}

/// Forks by the bare system call.
///
/// The C library's `fork` does more in the child, and every page that it
/// touches there is a page fault: measured on emulated CPUs, it makes the
/// child start 200 us later and doubles the CPU time that it has used by its
/// exit. What it would bring up to date (locks of other threads, the cached
/// thread id) our children do not use.
///
/// A child that shares our memory (`CLONE_VM`) would start sooner still. But a
/// function has an address space of its own, and switching between those is
/// part of what a scheduler that switches often costs.
fn fork() -> Result<libc::pid_t, Errno> {
    let flags = libc::c_long::from(libc::SIGCHLD);
    let zero: libc::c_long = 0;
    // SAFETY: without a stack of its own the child goes on in a copy of ours,
    // as with fork. This process has a single thread, so nothing that the
    // child uses can be locked or half changed; it exits without unwinding.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) };
    Errno::result(pid).map(|pid| pid as libc::pid_t)
}

/// Waits for any child; `None` if WNOHANG is given and none has ended.
fn wait4(options: i32) -> Result<Option<(libc::pid_t, State, Usage)>, Errno> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right types.
    let waited = unsafe { libc::wait4(-1, &mut status, options, &mut usage) };
    let pid = Errno::result(waited)?;
    if pid == 0 {
        return Ok(None);
    }
    let state = if libc::WIFEXITED(status) {
        State::Exited(libc::WEXITSTATUS(status) as u32)
    } else {
        State::Killed(libc::WTERMSIG(status) as u32)
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let usage = Usage {
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    };
    Ok(Some((pid, state, usage)))
}
