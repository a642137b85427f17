//! Crowds of tasks that keep a machine in a state to measure: queues of a given
//! length, many sleepers, arrivals at a rate, groups that exchange messages,
//! rings that pass a token, clients and servers; and the cost of BPF programs
//! meanwhile. This crate is only that load program, for `make overhead`, `make
//! parity` and `make stress`; it runs as root in a virtual machine.

mod arrivals;
mod costs;
mod crew;
mod handoffs;
mod keystrokes;
mod latency;
mod messages;
mod requests;
mod sleepers;
mod system;
mod turns;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use handoffs::Through;

/// A crowd of tasks to measure a scheduler with.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    crowd: Crowd,
}

#[derive(Debug, Subcommand)]
enum Crowd {
    /// A constant number of runnable tasks, until killed. Prints "ready" when all are
    /// runnable.
    Turns {
        /// Tasks that are runnable at any time, running ones included.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        tasks: u32,
        /// CPU time of a turn in microseconds.
        #[arg(long, default_value = "20", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
        burst_us: u64,
        /// How a turn ends.
        #[arg(long, value_enum, default_value = "block")]
        end: End,
        /// Threads that run and end first, for a scheduler to learn from.
        #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(0..=100_000))]
        rehearse: u32,
    },
    /// Threads that sleep, until killed. Prints "ready" when all sleep.
    Sleepers {
        /// Number of threads.
        #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
        tasks: u32,
    },
    /// Threads that start, use a little CPU time and end, at a rate. Prints their number, and
    /// the number per second.
    Arrivals {
        /// Threads a second.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rate: u32,
        /// Seconds.
        #[arg(long, default_value = "10", value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Number of thread names, for schedulers that identify functions by name.
        #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        functions: u32,
    },
    /// The cost of each BPF program of a scheduler, from the kernel's BPF statistics. Prints a
    /// line for each: name, calls, mean and typical nanoseconds of a call.
    Costs {
        /// Programs whose names begin with this.
        #[arg(long, default_value = "sfs_")]
        prefix: String,
        /// Seconds.
        #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
    },
    /// Groups of processes in which each sender sends to each receiver through socket pairs.
    /// Prints the milliseconds from the first message to the last.
    Messages {
        /// Number of groups.
        #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1000))]
        groups: u32,
        /// Number of senders, and of receivers, in a group.
        #[arg(long, default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100))]
        pairs: u32,
        /// Messages of 100 bytes from each sender to each receiver.
        #[arg(long, default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        messages: u32,
    },
    /// A token that passes round rings of processes. Prints the handoffs per second.
    Handoffs {
        /// How the token is passed.
        #[arg(long, value_enum, default_value = "pipe")]
        through: Through,
        /// Number of rings, each with its own token.
        #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
        rings: u32,
        /// Number of processes in a ring.
        #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(2..=1000))]
        tasks: u32,
        /// Rounds of each token.
        #[arg(long, default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
        rounds: u32,
    },
    /// Clients that send requests, each to its own server, through Unix sockets. Prints mean,
    /// 99th percentile and longest time to the answer, in microseconds.
    Requests {
        /// Number of clients, and of servers.
        #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1000))]
        clients: u32,
        /// Requests of each client.
        #[arg(long, default_value = "200", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        requests: u32,
        /// CPU time of the server for a request, in microseconds.
        #[arg(long, default_value = "200", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
        service_us: u64,
        /// Time between an answer and the next request, in microseconds.
        #[arg(long, default_value = "2000", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
        think_us: u64,
    },
    /// Keystrokes sent through a pseudoterminal to a program that echoes them. Prints mean, 99th
    /// percentile and longest time to the answer, in microseconds.
    Keystrokes {
        /// Number of keystrokes.
        #[arg(long, default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        keys: u32,
        /// Milliseconds between them.
        #[arg(long, default_value = "20", value_parser = clap::value_parser!(u64).range(1..=10_000))]
        pause_ms: u64,
    },
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum End {
    /// The thread wakes up another thread and sleeps.
    Block,
    /// The process forks the next one and ends.
    Fork,
}

fn main() -> ExitCode {
    let result = match Options::parse().crowd {
        Crowd::Turns {
            tasks,
            burst_us,
            end,
            rehearse,
        } => {
            let burst = Duration::from_micros(burst_us);
            system::become_real_time()
                .and_then(|()| arrivals::rehearse(rehearse, burst))
                .and_then(|()| match end {
                    End::Block => turns::block(tasks, burst),
                    End::Fork => turns::fork(tasks, burst),
                })
        }
        Crowd::Sleepers { tasks } => system::become_real_time().and_then(|()| sleepers::run(tasks)),
        Crowd::Arrivals {
            rate,
            seconds,
            functions,
        } => system::become_real_time().and_then(|()| arrivals::run(rate, seconds, functions)),
        Crowd::Costs { prefix, seconds } => {
            system::become_real_time().and_then(|()| costs::run(&prefix, seconds))
        }
        Crowd::Messages {
            groups,
            pairs,
            messages,
        } => messages::run(groups, pairs, messages),
        Crowd::Handoffs {
            through,
            rings,
            tasks,
            rounds,
        } => handoffs::run(through, rings, tasks, rounds),
        Crowd::Requests {
            clients,
            requests,
            service_us,
            think_us,
        } => requests::run(requests::Load {
            clients,
            requests,
            service: Duration::from_micros(service_us),
            think: Duration::from_micros(think_us),
        }),
        Crowd::Keystrokes { keys, pause_ms } => {
            keystrokes::run(keys, Duration::from_millis(pause_ms))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sfs_crowd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
