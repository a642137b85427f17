//! Replay: one process for one invocation, started at its arrival.
//!
//! Three kinds of processes take part. The *supervisor* (the `run` command)
//! has read the trace and looks after the scheduler. The *dispatcher* is a
//! fresh, small, single-threaded process: it forks one *child* at each
//! arrival, and forking is the cheaper the less memory the forking process
//! has. They share a [`board::Board`]: the plan goes down, the measurements
//! come back, without any locking or allocation in the child.

pub mod board;
pub mod child;
pub mod clock;
pub mod dispatcher;
pub mod realtime;

use crate::result::{Exit, Record};
use crate::trace::Trace;
use anyhow::{bail, Context, Result};
use board::{Board, State};
use realtime::ChildPolicy;
use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::time::Duration;

/// The hidden first argument that turns this program into a dispatcher.
pub const DISPATCH: &str = "__dispatch";

/// What a replay measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// One record for each invocation, in the order of the trace.
    pub records: Vec<Record>,
    /// How late each was forked, in nanoseconds; not for those that could not be.
    pub lag_ns: Vec<u64>,
}

/// Replays `trace` on this machine.
///
/// `pin` is the number of CPUs to restrict the children to, 0 for all.
/// `progress` is called several times a second with the number of invocations
/// that are complete, if it is given.
///
/// # Errors
/// If the dispatcher cannot be started or does not come to its end.
pub fn replay(
    trace: &Trace,
    policy: ChildPolicy,
    pin: u32,
    progress: Option<&dyn Fn(u64)>,
) -> Result<Measured> {
    let (board, file) = Board::create(&trace.invocations, policy, pin)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut dispatcher = Command::new(program)
        .arg(DISPATCH)
        .arg(file.as_raw_fd().to_string())
        .spawn()
        .context("cannot start the dispatcher")?;
    let status = wait(&mut dispatcher, &board, progress)?;
    if let Some(message) = dispatcher::explain(board.error()) {
        bail!("{message}");
    }
    if !status.success() {
        bail!("the dispatcher ended early: {status}");
    }
    Ok(measured(trace, &board))
}

fn wait(
    dispatcher: &mut Child,
    board: &Board,
    progress: Option<&dyn Fn(u64)>,
) -> Result<std::process::ExitStatus> {
    let Some(progress) = progress else {
        // Nobody looks: do not disturb the measurement by waking up.
        return dispatcher.wait().context("cannot wait for the dispatcher");
    };
    loop {
        progress(board.completed());
        let ended = dispatcher.try_wait();
        if let Some(status) = ended.context("cannot wait for the dispatcher")? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn measured(trace: &Trace, board: &Board) -> Measured {
    let origin = board.origin_ns();
    let since = |ns: u64| ns.checked_sub(origin).map(|ns| ns / 1000);
    let mut measured = Measured {
        records: Vec::with_capacity(trace.invocations.len()),
        lag_ns: Vec::with_capacity(trace.invocations.len()),
    };
    for (id, invocation) in trace.invocations.iter().enumerate() {
        let slot = board.slot(id);
        let exit = match slot.state() {
            State::Exited(code) => Exit::Code(code),
            State::Killed(signal) => Exit::Signal(signal),
            State::NotForked(errno) => Exit::Fork(errno),
        };
        if let Some(forked) = slot.forked_ns() {
            let planned = origin + invocation.arrival_us * 1000;
            measured.lag_ns.push(forked.saturating_sub(planned));
        }
        measured.records.push(Record {
            id,
            function: invocation.function.clone(),
            arrival_us: invocation.arrival_us,
            start_us: slot.start_ns().and_then(since),
            end_us: slot.end_ns().and_then(since),
            cpu_us: slot.cpu_us(),
            service_us: invocation.service_us(),
            voluntary_switches: slot.voluntary(),
            involuntary_switches: slot.involuntary(),
            exit,
        });
    }
    measured
}
