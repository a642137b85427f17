//! Searches for seeds under which the kernel half violates an invariant: `make simulate`.

use clap::{Parser, Subcommand};
use sfs_model::machine::{self, Faults};
use sfs_model::search;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the kernel half in a model of the kernel, and checks invariants.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run one seed
    Run {
        /// The seed: it draws the machine, the workload and all random numbers
        seed: u64,
        /// Milliseconds of the machine's time
        #[arg(long, default_value_t = search::MS, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
        ms: u64,
        /// Print the last events before the first finding, or before the end
        #[arg(long)]
        timeline: bool,
        /// A machine on which no kick of another CPU arrives
        #[arg(long)]
        lost_kicks: bool,
        /// A machine on which timers fire 20 ms late
        #[arg(long)]
        late_timers: bool,
    },
    /// Run one seed after another, each in a process of its own
    Search {
        /// The first seed
        #[arg(long, env = "SEED", default_value_t = 1)]
        seed: u64,
        /// Seconds of real time
        #[arg(long, env = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        seconds: u64,
        /// Seeds at the same time; default: one for each CPU
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
        jobs: Option<u16>,
    },
}

fn main() -> ExitCode {
    match Options::parse().task {
        Task::Run {
            seed,
            ms,
            timeline,
            lost_kicks,
            late_timers,
        } => {
            let faults = Faults {
                lost_kicks,
                late_timers,
            };
            one(seed, ms, timeline, faults)
        }
        Task::Search {
            seed,
            seconds,
            jobs,
        } => match search::search(seed, Duration::from_secs(seconds), jobs.map(usize::from)) {
            Ok(report) => ExitCode::from(u8::from(report.failed())),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "sfs_model: {error:#}");
                ExitCode::from(2)
            }
        },
    }
}

/// Runs one seed; the last line is for [`search`].
fn one(seed: u64, ms: u64, timeline: bool, faults: Faults) -> ExitCode {
    let outcome = machine::run(seed, ms * 1_000_000, faults);
    let mut out = std::io::stdout().lock();
    if timeline {
        for (at, event) in &outcome.timeline {
            let _ = writeln!(out, "{:>12.3} ms  {event}", *at as f64 / 1e6);
        }
    }
    for finding in &outcome.findings {
        let _ = writeln!(out, "{finding}");
    }
    let _ = writeln!(out, "{}", search::last_line(seed, ms, &outcome));
    ExitCode::from(u8::from(!outcome.findings.is_empty()))
}
