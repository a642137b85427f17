//! Tasks that have to do with each other: they hand over by pipes and futexes, send messages to
//! many, fork, execute, wait for each other; and servers, which accept and receive.

use crate::life::{Act, Tells};
use crate::state::TaskId;
use crate::workload::{between, exponential, Behaviour};
use rand_chacha::ChaCha8Rng;
use sfs_kernel_draws::numbers::US;
use std::collections::VecDeque;

/// How a task deals with others. Times are averages in us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Social {
    /// A member of a ring: waits for a message, runs, sends it to the next member.
    Ring {
        /// The number of the next member, less this one's.
        next: i64,
        /// CPU time of a turn.
        runs_us: u64,
        /// The wake-up is synchronous, as that of a pipe; a futex's is not.
        sync: bool,
    },
    /// Sends a message to each of the tasks that follow it, and sleeps.
    Sender {
        /// Number of receivers.
        receivers: u64,
        /// CPU time of a turn.
        runs_us: u64,
        /// The sleep behind it.
        sleeps_us: u64,
    },
    /// Waits for messages, and runs for each.
    Receiver {
        /// CPU time of a turn.
        runs_us: u64,
    },
    /// A shell or a runtime: starts processes.
    Forker {
        /// CPU time of a turn.
        runs_us: u64,
        /// Sleep between two, unless it waits for the process.
        sleeps_us: u64,
        /// What it waits for.
        waits: Tells,
        /// CPU time of the processes.
        child_us: u64,
    },
    /// Serves requests, one after the other; a function, forked after load.
    Server {
        /// CPU time of a request.
        runs_us: u64,
        /// Time between requests.
        sleeps_us: u64,
        /// It pulls its requests by receiving; others accept connections.
        pulls: bool,
    },
}

impl Social {
    /// CPU time of a turn until its first act, ns.
    pub fn first(self, random: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Server { .. } => between(random, 1, 20) * US,
            Self::Ring { runs_us, .. }
            | Self::Sender { runs_us, .. }
            | Self::Receiver { runs_us }
            | Self::Forker { runs_us, .. } => exponential(random, runs_us * US),
        }
    }

    /// The time until the task wakes up by itself, ns; those that wait for a message do so as if
    /// by a timeout, after a long time.
    pub fn sleep(self, random: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Sender { sleeps_us, .. }
            | Self::Forker { sleeps_us, .. }
            | Self::Server { sleeps_us, .. } => exponential(random, sleeps_us * US),
            Self::Ring { .. } | Self::Receiver { .. } => 50_000 * US,
        }
    }

    /// How it begins: whether it is forked after load, and whether it wakes up by itself. Of a
    /// ring, the last member does.
    pub fn begins(self) -> (bool, bool) {
        match self {
            Self::Server { .. } => (true, true),
            Self::Ring { next, .. } => (false, next < 0),
            Self::Receiver { .. } => (false, false),
            Self::Sender { .. } | Self::Forker { .. } => (false, true),
        }
    }

    /// Returns true if its sleep ends by a message only.
    pub fn awaits_mail(self) -> bool {
        match self {
            Self::Ring { .. } | Self::Receiver { .. } => true,
            Self::Forker { waits, .. } => waits != Tells::Nothing,
            Self::Sender { .. } | Self::Server { .. } => false,
        }
    }

    /// What it does behind the first part of a turn.
    pub fn acts(self, task: TaskId, random: &mut ChaCha8Rng) -> VecDeque<Act> {
        match self {
            Self::Ring { next, sync, .. } => {
                let to = (task as i64 + next) as TaskId;
                [Act::Send { to, sync }].into()
            }
            Self::Sender { receivers, .. } => {
                let send = |n| Act::Send {
                    to: task + n as usize,
                    sync: true,
                };
                let pause = |n| [send(n), Act::Run(2 * US)];
                (1..=receivers).flat_map(pause).collect()
            }
            Self::Receiver { .. } => VecDeque::new(),
            Self::Forker {
                waits, child_us, ..
            } => {
                let cpu_time = exponential(random, child_us * US);
                [Act::Fork {
                    tells: waits,
                    runs_us: cpu_time / US,
                }]
                .into()
            }
            Self::Server { runs_us, pulls, .. } => request(pulls, runs_us, random),
        }
    }
}

/// A server that has waited for its request: often another one is there already behind it.
fn request(pulls: bool, runs_us: u64, random: &mut ChaCha8Rng) -> VecDeque<Act> {
    let mut acts = VecDeque::new();
    let protocol = between(random, 0, 2) as u32;
    loop {
        let fails = between(random, 0, 9) == 0;
        if !pulls {
            acts.push_back(Act::LeaveAccept { protocol, fails });
        }
        if pulls || between(random, 0, 1) == 0 {
            let got = [100, 1, 0, -11][between(random, 0, 3) as usize];
            acts.push_back(Act::Receive { protocol, got });
        }
        acts.push_back(Act::Run(exponential(random, runs_us * US)));
        if !pulls {
            acts.push_back(Act::EnterAccept { protocol });
        }
        if between(random, 0, 2) > 0 {
            return acts;
        }
    }
}

/// Draws tasks of these kinds for a machine with `cpus` CPUs; half of the machines have none.
pub fn draw(random: &mut ChaCha8Rng, cpus: u64) -> Vec<Behaviour> {
    let mut all: Vec<Social> = Vec::new();
    if between(random, 0, 1) == 0 {
        return Vec::new();
    }
    for _ in 0..between(random, 1, cpus.div_ceil(4) + 1) {
        match between(random, 0, 4) {
            0 | 1 => all.extend(ring(random)),
            2 => all.extend(group(random)),
            3 => all.push(forker(random)),
            _ => all.extend(servers(random)),
        }
    }
    all.into_iter().map(Behaviour::Social).collect()
}

fn ring(random: &mut ChaCha8Rng) -> Vec<Social> {
    let sync = between(random, 0, 2) > 0;
    let members = if sync { 2 } else { between(random, 2, 8) } as i64;
    let runs_us = between(random, 2, 300);
    let next = |n| if n + 1 < members { 1 } else { 1 - members };
    let member = |n| Social::Ring {
        next: next(n),
        runs_us,
        sync,
    };
    (0..members).map(member).collect()
}

fn group(random: &mut ChaCha8Rng) -> Vec<Social> {
    let receivers = between(random, 1, 12);
    let sender = Social::Sender {
        receivers,
        runs_us: between(random, 5, 500),
        sleeps_us: between(random, 50, 5_000),
    };
    let runs_us = between(random, 5, 500);
    let mut all = vec![sender];
    all.extend((0..receivers).map(|_| Social::Receiver { runs_us }));
    all
}

fn servers(random: &mut ChaCha8Rng) -> Vec<Social> {
    let server = Social::Server {
        runs_us: between(random, 50, 5_000),
        sleeps_us: between(random, 50, 10_000),
        pulls: between(random, 0, 1) == 0,
    };
    vec![server; between(random, 1, 6) as usize]
}

fn forker(random: &mut ChaCha8Rng) -> Social {
    Social::Forker {
        runs_us: between(random, 20, 1_000),
        sleeps_us: between(random, 100, 20_000),
        waits: [Tells::Nothing, Tells::Exec, Tells::End][between(random, 0, 2) as usize],
        child_us: between(random, 100, 20_000),
    }
}

/// The first turn of a process, which has `runs_us` in it: most execute a program, some start
/// threads.
pub fn first_turn(random: &mut ChaCha8Rng, runs_us: u64) -> (u64, VecDeque<Act>) {
    let mut acts = VecDeque::new();
    if between(random, 0, 2) == 0 {
        acts.push_back(Act::Exec);
        acts.push_back(Act::Run((runs_us * US).max(US)));
    }
    if between(random, 0, 9) == 0 {
        for _ in 0..between(random, 1, 6) {
            acts.push_back(Act::Thread {
                runs_us: runs_us.max(20) / between(random, 1, 4),
            });
            acts.push_back(Act::Run(10 * US));
        }
    }
    let first = match acts.front() {
        Some(Act::Exec) => exponential(random, 60 * US),
        _ => (runs_us * US).max(US),
    };
    (first, acts)
}
