//! A warm sandbox: accepts a request, serves it, answers, and accepts the next.

use super::board::{Board, Slot, State};
use super::child::{self, exit, EndOnPanic};
use super::fork::fork;
use super::meter::Meter;
use super::wait::wait4;
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::work::Worker;
use faas_data::fixed::Kernel;
use faas_data::trace::Phase;
use nix::errno::Errno;
use nix::sys::socket::{accept4, SockFlag};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The exit code of a sandbox that cannot continue, for example because of too
/// many open files, or too little memory for its working set.
const GIVEN_UP: i32 = 71;

/// One process that serves the requests of one function.
#[derive(Debug)]
pub struct Sandbox<'a> {
    /// The destination of results.
    pub board: &'a Board,
    /// The socket that it listens on.
    pub listener: OwnedFd,
    /// The worker.
    pub worker: Worker,
    /// The kinds of fixed work of its function.
    pub kernels: Vec<Kernel>,
    /// Whether each request is served by a process forked for it.
    pub forks: bool,
}

impl Sandbox<'_> {
    /// Serves requests until the process ends.
    pub fn run(mut self) -> ! {
        let _guard = EndOnPanic;
        let mut phases = Vec::new();
        if self.worker.make(&self.kernels).is_err() {
            exit(GIVEN_UP);
        }
        let mut meter = Meter::begin();
        self.board.add_ready();
        loop {
            if self.request(&mut phases, &mut meter).is_err() {
                exit(GIVEN_UP);
            }
        }
    }

    /// Serves the next request. A request is the id of an invocation; the
    /// answer is its final state, as a number.
    fn request(&mut self, phases: &mut Vec<Phase>, meter: &mut Meter) -> std::io::Result<()> {
        // The cost of the last answer belongs to no invocation.
        meter.lap();
        let mut connection = self.accept()?;
        let (start_ns, begun_ns) = (monotonic_ns(), thread_cpu_ns());
        let mut id = [0; 8];
        connection.read_exact(&mut id)?;
        let slot = self.board.slot(u64::from_ne_bytes(id) as usize);
        phases.clear();
        slot.phases(phases);
        let state = if self.forks {
            self.fork_and_wait(slot, phases)
        } else {
            slot.set_start_ns(start_ns);
            let code = child::serve_warm(slot, phases, &mut self.worker, begun_ns);
            let (usage, wait_ns) = meter.lap();
            slot.set_usage(&usage);
            slot.set_wait_ns(wait_ns);
            State::Exited(code as u32)
        };
        connection.write_all(&state.pack().to_ne_bytes())
    }

    fn accept(&self) -> Result<File, Errno> {
        loop {
            match accept4(self.listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
                Err(Errno::EINTR | Errno::ECONNABORTED) => {}
                // SAFETY: the kernel has just opened it for us.
                other => return other.map(|fd| File::from(unsafe { OwnedFd::from_raw_fd(fd) })),
            }
        }
    }

    /// Serves the request in a forked child, as the classic watchdog of
    /// OpenFaaS does. It starts when the child starts; the sandbox's own part
    /// is not measured.
    fn fork_and_wait(&mut self, slot: Slot<'_>, phases: &[Phase]) -> State {
        slot.set_runnable_ns(monotonic_ns());
        match fork() {
            Ok(0) => child::serve(slot, phases, &mut self.worker),
            Err(errno) => State::NotForked(errno as u32),
            Ok(_) => loop {
                match wait4(0) {
                    Ok(Some((_, state, usage))) => {
                        slot.set_usage(&usage);
                        return state;
                    }
                    Ok(None) | Err(Errno::EINTR) => {}
                    Err(errno) => return State::NotForked(errno as u32),
                }
            },
        }
    }
}
