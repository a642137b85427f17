//! The process that starts sandboxes for the dispatcher.
//!
//! The dispatcher sends it a number, a function and a listening socket. It
//! forks the sandbox, in a cgroup if requested, and reports how each sandbox
//! ended. When the dispatcher is gone, for any reason, it ends all sandboxes
//! and removes their cgroups; signals from the terminal do not stop it.

use super::board::{Board, State};
use super::cgroup::Cgroups;
use super::child::{exit, EndOnPanic};
use super::fork::{fork, fork_into};
use super::realtime::{become_helper, pin, raise_file_limit, ChildPolicy};
use super::sandbox::Sandbox;
use super::steps::{Failure, STEP_KEEPER, STEP_PIN, STEP_POLICY, STEP_REALTIME};
use super::wait::wait4;
use crate::channel::{receive, send, Received};
use crate::work::Worker;
use faas_data::fixed::Kernel;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{kill, signal, SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;

/// Signals that a terminal or a user sends to the whole replay.
const IGNORED: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The keeper's parameters that are not on the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The functions' names, by number.
    pub functions: Vec<String>,
    /// The cgroups of the sandboxes, if they have any.
    pub cgroups: Option<Cgroups>,
    /// Whether sandboxes fork for each request.
    pub forks: bool,
}

/// A request for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The sandbox's number, counted over the whole replay.
    pub number: u32,
    /// Its function.
    pub function: u32,
}

/// A report of a sandbox's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The sandbox.
    pub number: u32,
    /// How it ended.
    pub state: State,
}

impl Start {
    /// Length of its message.
    pub const BYTES: usize = 8;

    /// Its message.
    pub fn pack(self) -> [u8; Self::BYTES] {
        (u64::from(self.function) << 32 | u64::from(self.number)).to_ne_bytes()
    }

    /// The order in a message.
    pub fn unpack(bytes: [u8; Self::BYTES]) -> Self {
        let word = u64::from_ne_bytes(bytes);
        Self {
            number: word as u32,
            function: (word >> 32) as u32,
        }
    }
}

impl Ended {
    /// Length of its message.
    pub const BYTES: usize = 16;

    /// Packs it into a message.
    pub fn pack(self) -> [u8; Self::BYTES] {
        let word = u128::from(self.state.pack()) << 64 | u128::from(self.number);
        word.to_ne_bytes()
    }

    /// The report in a message.
    pub fn unpack(bytes: [u8; Self::BYTES]) -> Self {
        let word = u128::from_ne_bytes(bytes);
        Self {
            number: word as u32,
            state: State::unpack((word >> 64) as u64),
        }
    }
}

/// Runs the keeper on the board in the open file `board`, with the [`Plan`] as
/// JSON in the open file `plan`. Standard input is its channel to the
/// dispatcher. Returns its exit code.
pub fn main(board: &str, plan: &str) -> ExitCode {
    let (Some(board), Some(plan)) = (Board::inherited(board), inherited_plan(plan)) else {
        return ExitCode::from(2);
    };
    let outcome = Keeper::new(&board, &plan).and_then(|mut keeper| {
        let outcome = keeper.run();
        keeper.end_all();
        outcome
    });
    if let Err((step, errno)) = outcome {
        board.set_error(step << 32 | errno as u64);
    }
    let removed = plan.cgroups.as_ref().is_none_or(|all| all.remove().is_ok());
    if outcome.is_ok() && removed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn inherited_plan(plan: &str) -> Option<Plan> {
    let fd = plan.parse::<RawFd>().ok().filter(|fd| *fd > 2)?;
    // SAFETY: the supervisor left this file open for us, and nothing else here
    // uses it.
    let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    serde_json::from_reader(file).ok()
}

struct Keeper<'a> {
    board: &'a Board,
    plan: &'a Plan,
    policy: ChildPolicy,
    worker: Option<Worker>,
    /// The kinds of fixed work of each function, if there are any.
    kernels: BTreeMap<u32, Vec<Kernel>>,
    ended: SignalFd,
    /// The living sandboxes, by process id.
    live: BTreeMap<libc::pid_t, u32>,
}

impl<'a> Keeper<'a> {
    fn new(board: &'a Board, plan: &'a Plan) -> Result<Self, Failure> {
        for one in IGNORED {
            // SAFETY: no handler of ours, so nothing that could go wrong in one.
            let _ = unsafe { signal(one, SigHandler::SigIgn) };
        }
        raise_file_limit();
        pin(board.pin()).map_err(|errno| (STEP_PIN, errno))?;
        let mut worker = Worker::new(board.peer(), board.rates(), board.refill());
        board
            .works()
            .into_iter()
            .for_each(|work| worker.prepare(work));
        become_helper().map_err(|errno| (STEP_REALTIME, errno))?;
        let mask = SigSet::from(Signal::SIGCHLD);
        let ended = mask
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK))
            .map_err(|errno| (STEP_KEEPER, errno))?;
        Ok(Self {
            board,
            plan,
            policy: board.policy().ok_or((STEP_POLICY, Errno::EINVAL))?,
            worker: Some(worker),
            kernels: board.rates().map(|_| board.kernels()).unwrap_or_default(),
            ended,
            live: BTreeMap::new(),
        })
    }

    /// Starts sandboxes and waits for them until the dispatcher is gone.
    fn run(&mut self) -> Result<(), Failure> {
        let stdin = std::io::stdin();
        let orders = stdin.as_fd();
        loop {
            let mut both = [
                PollFd::new(orders, PollFlags::POLLIN),
                PollFd::new(self.ended.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                other => other.map_err(|errno| (STEP_KEEPER, errno))?,
            };
            while let Ok(Some(_)) = self.ended.read_signal() {}
            if !self.reap(orders)? || !self.take(orders)? {
                return Ok(());
            }
        }
    }

    /// Reads the waiting orders; false when there will be no more.
    fn take(&mut self, orders: BorrowedFd<'_>) -> Result<bool, Failure> {
        let mut buffer = [0; Start::BYTES];
        loop {
            match receive(orders, &mut buffer).map_err(|errno| (STEP_KEEPER, errno))? {
                Received::Message(Start::BYTES, Some(listener)) => {
                    let order = Start::unpack(buffer);
                    match self.start(order, listener) {
                        Ok(pid) => self.live.insert(pid, order.number),
                        Err(failure) if failure.0 == STEP_POLICY => return Err(failure),
                        Err((_, errno)) => {
                            let state = State::NotForked(errno as u32);
                            if !tell(orders, order.number, state)? {
                                return Ok(false);
                            }
                            None
                        }
                    };
                }
                // The socket was lost because of too many open files.
                Received::Message(..) => {
                    let state = State::NotForked(Errno::EMFILE as u32);
                    if !tell(orders, Start::unpack(buffer).number, state)? {
                        return Ok(false);
                    }
                }
                Received::Nothing => return Ok(true),
                Received::End => return Ok(false),
            }
        }
    }

    fn start(&mut self, order: Start, listener: OwnedFd) -> Result<libc::pid_t, Failure> {
        let failed = |errno| (STEP_KEEPER, errno);
        let pid = match &self.plan.cgroups {
            None => fork().map_err(failed)?,
            Some(cgroups) => {
                let folder = cgroups
                    .sandbox(order.function, order.number)
                    .map_err(failed)?;
                fork_into(folder.as_fd()).map_err(failed)?
            }
        };
        if pid == 0 {
            let _guard = EndOnPanic;
            self.become_sandbox(order.function, listener)
        }
        let set = self.policy.apply(pid);
        set.map_err(|errno| (STEP_POLICY, errno))?;
        Ok(pid)
    }

    /// Turns the forked process into a sandbox.
    fn become_sandbox(&mut self, function: u32, listener: OwnedFd) -> ! {
        let _ = set_pdeathsig(Signal::SIGKILL);
        for one in IGNORED {
            // SAFETY: no handler of ours, so nothing that could go wrong in one.
            let _ = unsafe { signal(one, SigHandler::SigDfl) };
        }
        let _ = SigSet::from(Signal::SIGCHLD).thread_unblock();
        if let Some(name) = self.plan.functions.get(function as usize) {
            let _ = CString::new(name.as_str()).map(|name| set_name(&name));
        }
        // Otherwise the dispatcher would take it for the keeper.
        let _ = nix::unistd::close(0);
        let Some(worker) = self.worker.take() else {
            exit(2);
        };
        let kernels = self.kernels.remove(&function);
        let sandbox = Sandbox {
            board: self.board,
            listener,
            worker,
            kernels: kernels.unwrap_or_default(),
            forks: self.plan.forks,
        };
        sandbox.run()
    }

    /// Collects the ended sandboxes and reports them; false if the dispatcher
    /// is gone.
    fn reap(&mut self, dispatcher: BorrowedFd<'_>) -> Result<bool, Failure> {
        while let Ok(Some((pid, state, _))) = wait4(libc::WNOHANG) {
            if let Some(number) = self.live.remove(&pid) {
                if !tell(dispatcher, number, state)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Kills all sandboxes and waits for them.
    fn end_all(&mut self) {
        for pid in self.live.keys() {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        while !self.live.is_empty() {
            match wait4(0) {
                Ok(Some((pid, ..))) => drop(self.live.remove(&pid)),
                Err(Errno::EINTR) => {}
                _ => return,
            }
        }
    }
}

/// Reports the end of a sandbox to the dispatcher; false if it is gone.
fn tell(dispatcher: BorrowedFd<'_>, number: u32, state: State) -> Result<bool, Failure> {
    match send(dispatcher, &Ended { number, state }.pack(), None, false) {
        Ok(()) => Ok(true),
        Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(false),
        Err(errno) => Err((STEP_KEEPER, errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_a_round_trip() {
        let start = Start {
            number: 7,
            function: u32::MAX,
        };
        assert_eq!(Start::unpack(start.pack()), start);
        for state in [State::Exited(71), State::Killed(9), State::NotForked(11)] {
            let ended = Ended {
                number: u32::MAX,
                state,
            };
            assert_eq!(Ended::unpack(ended.pack()), ended);
        }
    }
}
