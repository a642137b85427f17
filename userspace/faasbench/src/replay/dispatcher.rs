//! The process that starts every invocation at its arrival.
//!
//! It runs under SCHED_FIFO above everything that is measured and sleeps to
//! absolute times.
//!
//! One thing can still delay it: where the children are real-time tasks as
//! well, the kernel's fair server gives ordinary tasks that starve up to 50 ms
//! of each second, above every SCHED_FIFO priority. A busy background task then
//! shows in the summary's `arrival_lag_ms`.

use super::board::Board;
use super::clock::monotonic_ns;
use super::process;
use super::realtime::{become_dispatcher, pin, raise_file_limit, HOW_TO_PERMIT};
use super::warm::Pool;
use crate::work::Worker;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::os::fd::{BorrowedFd, RawFd};
use std::process::ExitCode;

/// Time between the dispatcher's start and the trace's start, so that its own
/// start-up disturbs nothing.
const LEAD_NS: u64 = 200_000_000;

/// Collecting what has ended must be over this long before the next arrival.
pub const MARGIN_NS: u64 = 300_000;

/// What could not be done, one of the steps below, and why.
pub type Failure = (u64, Errno);

/// Taking real-time priority.
pub const STEP_REALTIME: u64 = 1;
/// Restricting the children to some CPUs.
pub const STEP_PIN: u64 = 2;
/// Giving the children their policy.
pub const STEP_POLICY: u64 = 3;
/// Waiting for the children.
pub const STEP_WAIT: u64 = 4;
/// Having sandboxes started.
pub const STEP_KEEPER: u64 = 5;
/// Making a socket for a sandbox.
pub const STEP_SOCKET: u64 = 6;
/// Starting the first sandboxes.
pub const STEP_PRESTART: u64 = 7;
/// Waiting until they accept requests.
pub const STEP_READY: u64 = 8;

/// What an error on the board means, in one sentence.
pub fn explain(error: u64) -> Option<String> {
    let errno = Errno::from_raw(error as i32);
    Some(match error >> 32 {
        0 => return None,
        STEP_REALTIME => format!("{HOW_TO_PERMIT} ({errno})"),
        STEP_PIN => format!("cannot restrict the children to the first CPUs: {errno}"),
        STEP_POLICY => format!("cannot set the scheduling policy of the children: {errno}"),
        STEP_WAIT => format!("cannot wait for the children: {errno}"),
        STEP_KEEPER => format!("the process that starts the sandboxes cannot be reached: {errno}"),
        STEP_SOCKET => format!("cannot make a socket for a sandbox: {errno}"),
        STEP_PRESTART => format!(
            "cannot start a sandbox before the replay: {errno}; a smaller --prestart needs fewer \
             processes, memory and files"
        ),
        STEP_READY => format!("the sandboxes did not get ready to accept requests: {errno}"),
        step => format!("step {step} failed: {errno}"),
    })
}

/// The board in the open file with the number `board`, which the supervisor
/// handed down.
pub fn inherited_board(board: &str) -> Option<Board> {
    let fd = board.parse::<RawFd>().ok().filter(|fd| *fd > 2)?;
    // SAFETY: the supervisor left this file open for us; if it did not, the
    // calls on it fail. Nothing in this process closes it.
    Board::open(unsafe { BorrowedFd::borrow_raw(fd) }).ok()
}

/// Runs the dispatcher on the board in the open file `board`. If there are
/// sandboxes, standard input is its channel to the [`super::keeper`]. Returns
/// its exit code.
pub fn main(board: &str) -> ExitCode {
    let Some(board) = inherited_board(board) else {
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
    // Nobody would read what it measures for a supervisor that is gone.
    let _ = set_pdeathsig(Signal::SIGKILL);
    raise_file_limit();
    pin(board.pin()).map_err(|errno| (STEP_PIN, errno))?;
    let mut worker = Worker::new(board.peer());
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
