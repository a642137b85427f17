//! A queue of constant length: the requested number of tasks is runnable at any time.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam::queue::SegQueue;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{signal, SigHandler, Signal};
use nix::unistd::{fork as fork_process, ForkResult};

use crate::system::{burn, now, ready, sleep_until, spawn};

/// Extra sleepers for each CPU, so that a thread that is about to sleep always finds another to
/// wake up: more than can be between these two steps at a time.
const SPARE: usize = 4;

/// Keeps `tasks` threads runnable. Each burns `burst`, wakes up a sleeping one, and sleeps.
///
/// # Errors
///
/// A thread cannot be started.
pub fn block(tasks: u32, burst: Duration) -> Result<()> {
    let tasks = tasks as usize;
    let all = tasks + SPARE * thread::available_parallelism()?.get();
    let asleep = Arc::new(SegQueue::new());
    for number in 0..all {
        let asleep = Arc::clone(&asleep);
        spawn(move || take_turns(&asleep, burst)).with_context(|| format!("{number} of {all}"))?;
    }
    wait_for_length(&asleep, all);
    for _ in 0..tasks {
        if let Some(one) = asleep.pop() {
            one.unpark();
        }
    }
    ready()
}

fn take_turns(asleep: &SegQueue<Thread>, burst: Duration) {
    asleep.push(thread::current());
    thread::park();
    loop {
        burn(burst);
        match asleep.pop() {
            Some(next) => {
                asleep.push(thread::current());
                next.unpark();
                thread::park();
            }
            None => thread::yield_now(),
        }
    }
}

fn wait_for_length(queue: &SegQueue<Thread>, length: usize) {
    while queue.len() < length {
        sleep_until(now() + Duration::from_millis(5));
    }
}

/// Keeps `tasks` processes runnable. Each burns `burst`, forks the next one, and ends.
///
/// # Errors
///
/// A process cannot be forked.
pub fn fork(tasks: u32, burst: Duration) -> Result<()> {
    // The kernel reaps ended processes; otherwise init would have to wait for each.
    set_child_subreaper(true).context("cannot adopt orphans")?;
    // SAFETY: no handler is installed.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }.context("cannot ignore SIGCHLD")?;
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    for number in 0..tasks {
        // SAFETY: the process has a single thread.
        match unsafe { fork_process() }.with_context(|| format!("fork {number} of {tasks}"))? {
            ForkResult::Child => {
                drop(writer);
                run_chain(burst, &reader)
            }
            ForkResult::Parent { .. } => {}
        }
    }
    let done = ready();
    drop(writer);
    done
}

/// Continues until the other end of `founder` is closed: processes that end within a
/// millisecond could not be killed one by one.
fn run_chain(burst: Duration, founder: &io::PipeReader) -> ! {
    while !is_closed(founder) {
        burn(burst);
        // SAFETY: the process has a single thread.
        match unsafe { fork_process() } {
            Ok(ForkResult::Child) => {}
            Ok(ForkResult::Parent { .. }) => break,
            Err(error) => eprintln!("sfs_crowd: {}", io::Error::from(error)),
        }
    }
    // SAFETY: ends the process; there is no output to flush.
    unsafe { libc::_exit(0) }
}

fn is_closed(pipe: &io::PipeReader) -> bool {
    let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    let looked = poll(&mut fds, PollTimeout::ZERO);
    let events = fds[0].revents().unwrap_or(PollFlags::empty());
    looked.is_ok() && events.contains(PollFlags::POLLHUP)
}
