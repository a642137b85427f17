//! Replays traces: starts each invocation at its arrival and measures it. Owns
//! the processes of a replay, their cgroups, and the [work] of invocations.
//!
//! The *supervisor* (the caller of [`replay()`]) has read the trace and manages
//! the scheduler. The [`dispatcher`] is a new, small, single-threaded process.
//! At each arrival it forks one *child* ([`process`]); a fork is cheaper if the
//! forking process has less memory. Or it sends a request to a [`sandbox`] of a
//! pool ([`warm`]), started by a [`keeper`]. A [`peer`] is at the other end of
//! the pipes that invocations block on. They share a [`board::Board`] for the
//! plan and the measurements, without locks.
//!
//! These processes are the caller's program, started again: its `main` must
//! begin with [`play_role`].

pub mod attributes;
pub mod board;
pub mod calibrate;
pub mod cgroup;
pub mod channel;
pub mod child;
pub mod clock;
pub mod cpus;
pub mod dispatcher;
pub mod fork;
pub mod helpers;
pub mod keeper;
pub mod meter;
pub mod peer;
pub mod prepare;
pub mod process;
pub mod realtime;
pub mod refill;
pub mod sandbox;
pub mod setup;
pub mod steps;
pub mod topology;
pub mod wait;
pub mod warm;
pub mod work;

use anyhow::{bail, Context, Result};
use board::{Board, Plan, PoolCounts, State};
use faas_data::kind::{Blocking, Work};
use faas_data::output::note;
use faas_data::result::{Exit, Record};
use faas_data::trace::{Invocation, Phase, Trace};
use helpers::{spawn, Helpers};
use refill::Counts;
use setup::{Setup, CALIBRATE, DISPATCH, KEEP, PEER};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::process::{Child, ExitCode};
use std::time::Duration;
use topology::Topology;

/// The measurements of a replay.
#[derive(Debug, Default)]
pub struct Measured {
    /// One record for each invocation, in the order of the trace.
    pub records: Vec<Record>,
    /// The delay of each fork or request, in nanoseconds, without those that
    /// failed.
    pub lag_ns: Vec<u64>,
    /// The counters of the sandboxes, if there were any.
    pub pool: PoolCounts,
    /// The switches for which demands have grown.
    pub refills: Counts,
    /// When the trace's time began on the monotonic clock, in nanoseconds.
    pub origin_ns: u64,
}

/// Plays the role in a replay that the arguments of this program (without its
/// name) select, and returns the exit code. `None` if they select none.
///
/// Call it before anything else: each invocation is forked from one of these
/// processes, whose memory must stay small.
pub fn play_role(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let role = args.next()?;
    let mut next = || {
        let argument = args.next().unwrap_or_default();
        argument.to_string_lossy().into_owned()
    };
    match role.to_str()? {
        DISPATCH => Some(dispatcher::main(&next())),
        KEEP => Some(keeper::main(&next(), &next())),
        PEER => Some(peer::main()),
        CALIBRATE => Some(calibrate::main(&next())),
        _ => None,
    }
}

/// Replays `trace` on this machine.
///
/// Calls `progress`, if given, several times a second with the number of
/// completed invocations.
///
/// # Errors
/// If the board, a folder or a socket cannot be made, or if the dispatcher or its
/// helpers cannot be started or fail.
pub fn replay(trace: &Trace, setup: &Setup, progress: Option<&dyn Fn(u64)>) -> Result<Measured> {
    let pipes = |phase| {
        matches!(
            phase,
            Phase::Io {
                blocking: Some(Blocking::Pipe),
                ..
            }
        )
    };
    let files = |phase| {
        let computing = matches!(
            phase,
            Phase::Cpu {
                work: Some(Work::File | Work::Md | Work::Sa),
                ..
            }
        );
        computing
            || matches!(
                phase,
                Phase::Io {
                    blocking: Some(Blocking::File),
                    ..
                }
            )
    };
    if setup
        .refill
        .is_some_and(|amounts| amounts.depend_on_place())
    {
        tell_unknown(&Topology::read());
    }
    let mut helpers = Helpers::default();
    if setup.any(trace, files) {
        helpers.make_folder()?;
    }
    if setup.any(trace, pipes) {
        helpers.start_peer()?;
    }
    let (functions, names) = functions(&trace.invocations);
    let plan = Plan {
        policy: setup.policy,
        pin: setup.pin,
        defaults: setup.defaults,
        peer: helpers.peer(),
        prestart: setup.warm().map(|warm| warm.prestart),
        rates: setup.rates(),
        refill: setup.refill,
    };
    let (board, file) = Board::create(&trace.invocations, &functions, &plan)?;
    let board_number = file.as_raw_fd().to_string();
    let channel = match setup.warm() {
        None => None,
        Some(warm) => Some(helpers.start_keeper(&board_number, names, warm)?),
    };
    let mut dispatcher = spawn(&[DISPATCH, &board_number], channel, helpers.folder())
        .context("cannot start the dispatcher")?;
    let status = wait(&mut dispatcher, &board, progress)?;
    let ended = helpers.end();
    if let Some(message) = steps::explain(board.error()) {
        bail!("{message}");
    }
    if !status.success() {
        bail!("the dispatcher ended early: {status}");
    }
    ended?;
    Ok(measured(trace, setup, &board))
}

/// Says which places of CPUs the growth of demands cannot tell apart.
fn tell_unknown(topology: &Topology) {
    if let Some(unknown) = topology.unknown() {
        note(&format!(
            "note: sysfs does not tell {unknown}, so --refill takes all for one"
        ));
    }
}

/// The number of each invocation's function, by first appearance, and the names
/// of the functions.
fn functions(invocations: &[Invocation]) -> (Vec<u32>, Vec<String>) {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::new();
    let numbers = invocations.iter().map(|one| {
        *known.entry(&one.function).or_insert_with(|| {
            names.push(one.function.clone());
            names.len() as u32 - 1
        })
    });
    let numbers = numbers.collect();
    (numbers, names)
}

fn wait(
    dispatcher: &mut Child,
    board: &Board,
    progress: Option<&dyn Fn(u64)>,
) -> Result<std::process::ExitStatus> {
    let Some(progress) = progress else {
        // No progress is shown: do not disturb the measurement by wake-ups.
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

fn measured(trace: &Trace, setup: &Setup, board: &Board) -> Measured {
    let rates = setup.rates();
    let origin = board.origin_ns();
    let since = |ns: u64| ns.checked_sub(origin).map(|ns| ns / 1000);
    let mut measured = Measured {
        records: Vec::with_capacity(trace.invocations.len()),
        lag_ns: Vec::with_capacity(trace.invocations.len()),
        pool: board.pool(),
        refills: Counts::default(),
        origin_ns: origin,
    };
    for (id, invocation) in trace.invocations.iter().enumerate() {
        let slot = board.slot(id);
        measured.refills.add(slot.refills());
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
            runqueue_wait_us: slot.wait_ns().map(|ns| ns / 1000),
            alone_us: rates.alone_us(invocation, setup.defaults.work),
        });
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_numbered_in_order_of_appearance() {
        let call = |function: &str| Invocation::cpu(0, function, 1);
        let (numbers, names) = functions(&["b", "a", "b", "c"].map(call));
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(names, ["b", "a", "c"]);
    }
}
