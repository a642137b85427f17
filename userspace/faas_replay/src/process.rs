//! One process per invocation, forked at its arrival.
//!
//! Ended children are collected only while the next arrival is not near.
//! Collecting late distorts nothing, since children record their own times and
//! the kernel keeps their accounts.

use super::board::{Board, State};
use super::child;
use super::fork::fork;
use super::realtime::ChildPolicy;
use super::steps::{Failure, MARGIN_NS, STEP_POLICY, STEP_WAIT};
use super::wait::wait4;
use crate::clock::{monotonic_ns, sleep_until};
use crate::work::Worker;
use faas_data::trace::Phase;
use nix::errno::Errno;

/// Number of attempts to fork, and the pause between them, while the kernel
/// reports that it has no room for another process.
const TRIES: u32 = 10;
const PAUSE_NS: u64 = 1_000_000;

/// Replays all invocations on the board, from `origin_ns` on.
///
/// # Errors
/// If children cannot be given their policy or waited for.
pub fn replay(
    board: &Board,
    policy: ChildPolicy,
    worker: Worker,
    origin_ns: u64,
) -> Result<(), Failure> {
    let mut dispatcher = Dispatcher {
        board,
        policy,
        live: Vec::with_capacity(1024),
        phases: Vec::with_capacity(16),
        worker,
    };
    for id in 0..board.len() {
        let arrival_ns = origin_ns + board.slot(id).arrival_ns();
        dispatcher.collect_before(arrival_ns)?;
        sleep_until(arrival_ns);
        dispatcher.start(id)?;
    }
    while !dispatcher.live.is_empty() {
        dispatcher.collect(0)?;
    }
    Ok(())
}

struct Dispatcher<'a> {
    board: &'a Board,
    policy: ChildPolicy,
    /// Children not yet collected, and their invocations.
    live: Vec<(libc::pid_t, usize)>,
    /// The phases of the next child, which finds them in its copy of our stack
    /// and heap, without a page fault on the board.
    phases: Vec<Phase>,
    worker: Worker,
}

impl Dispatcher<'_> {
    /// Starts invocation `id`.
    fn start(&mut self, id: usize) -> Result<(), Failure> {
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
                slot.finish(State::NotForked(errno as u32));
                Ok(())
            }
        }
    }

    /// Forks the child of `id`; if necessary, collects ended ones to make room.
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
                Ok(0) => child::serve(slot, &self.phases, &mut self.worker),
                Ok(_) => {
                    slot.set_runnable_ns(monotonic_ns());
                    return outcome;
                }
                Err(Errno::EAGAIN | Errno::ENOMEM) => {}
                _ => return outcome,
            }
        }
        slot.set_forked_ns(0);
        outcome
    }

    /// Collects ended children while `deadline` is not near.
    fn collect_before(&mut self, deadline: u64) -> Result<(), Failure> {
        while monotonic_ns() + MARGIN_NS < deadline {
            if !self.collect(libc::WNOHANG)? {
                break;
            }
        }
        Ok(())
    }

    /// Collects one ended child; with WNOHANG, returns whether there was one.
    fn collect(&mut self, options: i32) -> Result<bool, Failure> {
        match wait4(options) {
            Ok(None) | Err(Errno::ECHILD) if self.live.is_empty() => Ok(false),
            Ok(None) | Err(Errno::EINTR) => Ok(false),
            Ok(Some((pid, state, usage))) => {
                if let Some(at) = self.live.iter().position(|(live, _)| *live == pid) {
                    let (_, id) = self.live.swap_remove(at);
                    let slot = self.board.slot(id);
                    slot.set_usage(&usage);
                    slot.finish(state);
                }
                Ok(true)
            }
            Err(errno) => Err((STEP_WAIT, errno)),
        }
    }
}
