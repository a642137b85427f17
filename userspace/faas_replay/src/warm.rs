//! Warm sandboxes, as the dispatcher sees them: a pool per function, which
//! grows when all are busy.
//!
//! The dispatcher never waits for a sandbox or for the keeper. It creates the
//! listening socket of a new sandbox itself, so that the request that needs it
//! is queued before the sandbox runs. Answers are read after an invocation has
//! been handed over, or before if it has no idle sandbox, and not when they
//! arrive: nothing depends on them until then, and a wake-up for each would
//! preempt the measured sandboxes.

use super::board::{Board, PoolCounts, State};
use super::keeper::{Ended, Start};
use super::steps::{Failure, MARGIN_NS, STEP_KEEPER, STEP_PRESTART, STEP_READY, STEP_SOCKET};
use crate::channel::{receive, send, Received};
use crate::clock::{monotonic_ns, sleep_until};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    bind, connect, listen, socket, AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr,
};
use std::collections::VecDeque;
use std::io::Stdin;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Time limit for the sandboxes to become ready before the replay.
const READY_NS: u64 = 60_000_000_000;

/// Time between two checks whether they are ready, or the keeper has room
/// again.
const PAUSE_NS: u64 = 1_000_000;

/// The keeper's number among the events; others are sandboxes.
const KEEPER: u64 = u64::MAX;

/// The state of a sandbox.
#[derive(Debug)]
enum Place {
    /// It waits for a request, or will once it has started.
    Idle,
    /// It serves this invocation.
    Busy { id: usize, connection: OwnedFd },
    /// It closed the connection of this invocation; the keeper will report why.
    Lost { id: usize },
    /// It no longer exists.
    Dead,
}

#[derive(Debug)]
struct Sandbox {
    function: u32,
    place: Place,
    /// Whether it has ever had a request.
    used: bool,
}

/// All sandboxes of a replay.
#[derive(Debug)]
pub struct Pool<'a> {
    board: &'a Board,
    keeper: &'a Stdin,
    events: Epoll,
    sandboxes: Vec<Sandbox>,
    /// Idle sandboxes of each function, the most recently used last.
    idle: Vec<Vec<u32>>,
    /// Orders for which the keeper has no room yet.
    unsent: VecDeque<(Start, OwnedFd)>,
    /// Invocations in progress.
    open: usize,
    counts: PoolCounts,
    /// Why the last attempt to start a sandbox failed.
    last_errno: Option<Errno>,
}

impl<'a> Pool<'a> {
    /// An empty pool, with the keeper behind the socket that is standard input.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn new(board: &'a Board, keeper: &'a Stdin) -> Result<Self, Failure> {
        let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let events = events.map_err(|errno| (STEP_SOCKET, errno))?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, KEEPER);
        let added = events.add(keeper.as_fd(), event);
        added.map_err(|errno| (STEP_KEEPER, errno))?;
        let ids = 0..board.len();
        let functions = ids.map(|id| board.slot(id).function() + 1).max();
        Ok(Self {
            board,
            keeper,
            events,
            sandboxes: Vec::with_capacity(1024),
            idle: vec![Vec::new(); functions.unwrap_or(0) as usize],
            unsent: VecDeque::new(),
            open: 0,
            counts: PoolCounts::default(),
            last_errno: None,
        })
    }

    /// Starts `count` sandboxes of each function, at most its number of
    /// invocations, and waits until they accept requests.
    ///
    /// # Errors
    /// If that fails.
    pub fn prestart(&mut self, count: u32) -> Result<(), Failure> {
        let mut invocations = vec![0; self.idle.len()];
        for id in 0..self.board.len() {
            invocations[self.board.slot(id).function() as usize] += 1;
        }
        for (function, invocations) in invocations.into_iter().enumerate() {
            for _ in 0..count.min(invocations) {
                let number = self.grow(function as u32);
                let number = number.map_err(|errno| (STEP_SOCKET, errno))?;
                self.idle[function].push(number);
                self.counts.prestarted += 1;
            }
        }
        self.await_ready()?;
        self.board.set_pool(self.counts);
        Ok(())
    }

    fn await_ready(&mut self) -> Result<(), Failure> {
        let deadline_ns = monotonic_ns() + READY_NS;
        while !self.unsent.is_empty() || self.board.ready() < self.counts.prestarted {
            self.flush()?;
            self.collect(0)?;
            if self.counts.died > 0 {
                let errno = self.last_errno.unwrap_or(Errno::ECHILD);
                return Err((STEP_PRESTART, errno));
            }
            let now_ns = monotonic_ns();
            if now_ns > deadline_ns {
                return Err((STEP_READY, Errno::ETIMEDOUT));
            }
            sleep_until(now_ns + PAUSE_NS);
        }
        Ok(())
    }

    /// Replays all invocations on the board, from `origin_ns` on.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn replay(&mut self, origin_ns: u64) -> Result<(), Failure> {
        for id in 0..self.board.len() {
            let arrival_ns = origin_ns + self.board.slot(id).arrival_ns();
            while monotonic_ns() + MARGIN_NS < arrival_ns && self.collect(0)? > 0 {}
            sleep_until(arrival_ns);
            let function = self.board.slot(id).function();
            if self.idle[function as usize].is_empty() {
                while self.collect(0)? > 0 {}
            }
            self.serve(id);
            self.flush()?;
        }
        while self.open > 0 {
            self.flush()?;
            // A sandbox that is not ordered yet cannot answer.
            let forever = self.unsent.is_empty();
            self.collect(if forever { -1 } else { 1 })?;
        }
        self.board.set_pool(self.counts);
        Ok(())
    }

    /// Sends the request of invocation `id` to the most recently used idle
    /// sandbox of its function, or to a new one.
    fn serve(&mut self, id: usize) {
        self.open += 1;
        self.board.slot(id).set_forked_ns(monotonic_ns());
        if let Err(errno) = self.hand_over(id) {
            self.board.slot(id).set_forked_ns(0);
            self.finish(id, State::NotForked(errno as u32));
        }
    }

    fn hand_over(&mut self, id: usize) -> Result<(), Errno> {
        let function = self.board.slot(id).function();
        while let Some(number) = self.idle[function as usize].pop() {
            match self.request(number, id) {
                // It has ended, and the keeper has not reported it yet.
                Err(Errno::ECONNREFUSED) => {}
                Err(errno) => {
                    self.idle[function as usize].push(number);
                    return Err(errno);
                }
                Ok(()) => return Ok(()),
            }
        }
        let number = self.grow(function)?;
        self.counts.cold_starts += 1;
        let sent = self.request(number, id);
        if sent.is_err() {
            self.idle[function as usize].push(number);
        }
        sent
    }

    /// Creates a sandbox's listening socket and orders the sandbox from the
    /// keeper.
    fn grow(&mut self, function: u32) -> Result<u32, Errno> {
        let number = self.sandboxes.len() as u32;
        let listener = unix_socket(SockFlag::empty())?;
        bind(listener.as_raw_fd(), &address(number)?)?;
        listen(&listener, Backlog::new(4)?)?;
        self.unsent
            .push_back((Start { number, function }, listener));
        self.sandboxes.push(Sandbox {
            function,
            place: Place::Idle,
            used: false,
        });
        Ok(number)
    }

    /// Passes the orders to the keeper, as far as it has room.
    fn flush(&mut self) -> Result<(), Failure> {
        while let Some((start, listener)) = self.unsent.front() {
            let to = self.keeper.as_fd();
            match send(to, &start.pack(), Some(listener.as_fd()), true) {
                Ok(()) => drop(self.unsent.pop_front()),
                // Too many sockets in flight: it has not read them yet.
                Err(Errno::EAGAIN | Errno::ETOOMANYREFS | Errno::ENOBUFS) => return Ok(()),
                Err(errno) => return Err((STEP_KEEPER, errno)),
            }
        }
        Ok(())
    }

    /// Connects to a sandbox and sends it the request of invocation `id`.
    fn request(&mut self, number: u32, id: usize) -> Result<(), Errno> {
        let connection = unix_socket(SockFlag::SOCK_NONBLOCK)?;
        connect(connection.as_raw_fd(), &address(number)?)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(number));
        self.events.add(&connection, event)?;
        let message = (id as u64).to_ne_bytes();
        let flags = MsgFlags::MSG_NOSIGNAL;
        nix::sys::socket::send(connection.as_raw_fd(), &message, flags)?;
        let sandbox = &mut self.sandboxes[number as usize];
        sandbox.place = Place::Busy { id, connection };
        sandbox.used = true;
        Ok(())
    }

    /// Reads answers and the keeper's reports, waiting up to `timeout_ms` (-1:
    /// no limit) for the first. Returns their number.
    fn collect(&mut self, timeout_ms: i32) -> Result<usize, Failure> {
        let mut events = [EpollEvent::empty(); 64];
        let timeout = EpollTimeout::try_from(timeout_ms).unwrap_or(EpollTimeout::ZERO);
        let count = match self.events.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            other => other.map_err(|errno| (STEP_KEEPER, errno))?,
        };
        for event in &events[..count] {
            match event.data() {
                KEEPER => self.hear()?,
                number => self.take_answer(number as u32),
            }
        }
        Ok(count)
    }

    /// Reads the answer of a busy sandbox, if there is one, or notices that it
    /// closed the connection.
    fn take_answer(&mut self, number: u32) {
        let sandbox = &mut self.sandboxes[number as usize];
        let Place::Busy { id, connection } = &sandbox.place else {
            return;
        };
        let (id, mut answer) = (*id, [0; 8]);
        match nix::unistd::read(connection, &mut answer) {
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Ok(8) => {
                sandbox.place = Place::Idle;
                self.idle[sandbox.function as usize].push(number);
                self.finish(id, State::unpack(u64::from_ne_bytes(answer)));
            }
            _ => sandbox.place = Place::Lost { id },
        }
    }

    /// Reads the keeper's reports of ended sandboxes.
    fn hear(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; Ended::BYTES];
        loop {
            let from = self.keeper.as_fd();
            match receive(from, &mut buffer).map_err(|errno| (STEP_KEEPER, errno))? {
                Received::Message(..) => self.bury(Ended::unpack(buffer)),
                Received::Nothing => return Ok(()),
                Received::End => return Err((STEP_KEEPER, Errno::EPIPE)),
            }
        }
    }

    /// Removes an ended sandbox. Its invocation has failed, unless it had
    /// answered; another sandbox replaces it.
    fn bury(&mut self, ended: Ended) {
        self.take_answer(ended.number);
        let sandbox = &mut self.sandboxes[ended.number as usize];
        let (function, used) = (sandbox.function, sandbox.used);
        let place = std::mem::replace(&mut sandbox.place, Place::Dead);
        match place {
            Place::Busy { id, .. } | Place::Lost { id } => self.finish(id, failure(ended.state)),
            Place::Idle => self.idle[function as usize].retain(|idle| *idle != ended.number),
            Place::Dead => {}
        }
        self.counts.died += 1;
        if let State::NotForked(errno) = ended.state {
            self.last_errno = Some(Errno::from_raw(errno as i32));
        }
        // If it never had a request, its replacement would also end.
        if used && !matches!(ended.state, State::NotForked(_)) {
            if let Ok(number) = self.grow(function) {
                self.idle[function as usize].insert(0, number);
            }
        }
    }

    fn finish(&mut self, id: usize, state: State) {
        self.board.slot(id).finish(state);
        self.open -= 1;
    }
}

/// The state of an invocation whose sandbox ended like this before it answered.
fn failure(state: State) -> State {
    match state {
        State::Exited(0) => State::Exited(1),
        other => other,
    }
}

fn unix_socket(flags: SockFlag) -> Result<OwnedFd, Errno> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

/// The address of sandbox `number` of this process's replay: an abstract name,
/// which vanishes with the sandbox.
fn address(number: u32) -> Result<UnixAddr, Errno> {
    let name = format!("faasbench-{}-{number}", std::process::id());
    UnixAddr::new_abstract(name.as_bytes())
}
