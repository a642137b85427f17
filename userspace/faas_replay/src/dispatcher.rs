//! The process that starts every invocation at its arrival.
//!
//! It runs under SCHED_FIFO above everything that is measured, and sleeps to
//! absolute times.
//!
//! One mechanism can still delay it: if the children are real-time tasks too,
//! the kernel's fair server gives starving ordinary tasks up to 50 ms of each
//! second, above every SCHED_FIFO priority. A busy background task then shows
//! in the summary's `arrival_lag_ms`.

use super::board::Board;
use super::process;
use super::realtime::{become_dispatcher, pin, raise_file_limit};
use super::steps::{Failure, STEP_PIN, STEP_POLICY, STEP_REALTIME};
use super::warm::Pool;
use crate::clock::monotonic_ns;
use crate::work::Worker;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::process::ExitCode;

/// Time between the dispatcher's start and the trace's start, so that its own
/// start-up disturbs nothing.
const LEAD_NS: u64 = 200_000_000;

/// Runs the dispatcher on the board in the open file `board`. If there are
/// sandboxes, standard input is its channel to the [`super::keeper`]. Returns
/// its exit code.
pub fn main(board: &str) -> ExitCode {
    let Some(board) = Board::inherited(board) else {
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

fn dispatch(board: &Board) -> Result<(), Failure> {
    // Without the supervisor its measurements would be lost.
    let _ = set_pdeathsig(Signal::SIGKILL);
    raise_file_limit();
    pin(board.pin()).map_err(|errno| (STEP_PIN, errno))?;
    let mut worker = Worker::new(board.peer(), board.rates(), board.refill());
    if board.prestart().is_none() {
        board
            .works()
            .into_iter()
            .for_each(|work| worker.prepare(work));
    }
    become_dispatcher().map_err(|errno| (STEP_REALTIME, errno))?;
    let policy = board.policy().ok_or((STEP_POLICY, Errno::EINVAL))?;
    let begin = || {
        let origin_ns = monotonic_ns() + LEAD_NS;
        board.set_origin_ns(origin_ns);
        origin_ns
    };
    let Some(prestart) = board.prestart() else {
        return process::replay(board, policy, worker, begin());
    };
    let keeper = std::io::stdin();
    let mut pool = Pool::new(board, &keeper)?;
    pool.prestart(prestart)?;
    pool.replay(begin())
}
