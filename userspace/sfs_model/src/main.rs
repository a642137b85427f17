//! Searches for seeds under which the kernel half violates an invariant: `make simulate`.

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};
use sfs_model::limits::Limits;
use sfs_model::machine::{self, Faults, Settings};
use sfs_model::replay::command::{CompareArgs, ReplayArgs};
use sfs_model::replay::scale::ScaleArgs;
use sfs_model::search::Known;
use sfs_model::{search, shrink};
use std::io::Write;
use std::path::PathBuf;
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
        #[command(flatten)]
        what: What,
        /// Print what happened last before the first finding, or before the end
        #[arg(long)]
        timeline: bool,
        /// End the run with more findings than these
        #[arg(long, default_value_t = machine::MOST_FINDINGS)]
        findings: usize,
        /// Give it up after so many seconds of real time; default: never
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        seconds: Option<u64>,
    },
    /// Make the finding of a seed small: fewer CPUs, tasks and kinds of events, less time; print
    /// the command that shows it, and its timeline
    Shrink {
        #[command(flatten)]
        what: What,
        /// Longest time, in seconds
        #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        seconds: u64,
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
        /// A file with kinds of findings that are known, a line each; they are counted, and are no
        /// failure
        #[arg(long, value_name = "FILE")]
        known: Option<PathBuf>,
        /// Compare each callback with the rules of the policy as well, which takes up to five times
        /// as long
        #[arg(long, env = "RULES", value_parser = FalseyValueParser::new())]
        rules: bool,
    },
    /// Replay a trace, and write a result as `faasbench run` does
    Replay(ReplayArgs),
    /// Replay a trace on more and more CPUs, and count what they write in turns
    Scale(ScaleArgs),
    /// Compare a result of a live kernel with one of the model, invocation by invocation
    Compare(CompareArgs),
}

#[derive(Debug, Args)]
struct What {
    /// The seed: it draws the machine, the workload and all random numbers
    seed: u64,
    /// Milliseconds of the machine's time
    #[arg(long, default_value_t = search::MS, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    ms: u64,
    /// What is left of the seed's machine, for example
    /// cpus=2,residents=0.3-5,functions=none,without=changes.loader
    #[arg(long, default_value_t)]
    only: Limits,
    /// A machine on which no kick of another CPU arrives
    #[arg(long)]
    lost_kicks: bool,
    /// A machine on which timers fire 20 ms late
    #[arg(long)]
    late_timers: bool,
    /// A machine that does not tell when a real-time task takes a CPU
    #[arg(long)]
    lost_releases: bool,
    /// A machine on which the loader is not woken up by the ring buffers
    #[arg(long)]
    lost_events: bool,
    /// A machine on which tasks cannot be moved from one queue to another
    #[arg(long)]
    stuck_queues: bool,
    /// Do not compare the kernel half with the rules at each callback
    #[arg(long)]
    unwatched: bool,
}

impl What {
    fn faults(&self) -> Faults {
        Faults {
            lost_kicks: self.lost_kicks,
            late_timers: self.late_timers,
            lost_releases: self.lost_releases,
            lost_events: self.lost_events,
            stuck_queues: self.stuck_queues,
        }
    }

    /// The options that set these faults, and what is compared.
    fn options(&self) -> Vec<String> {
        let options = [
            (self.lost_kicks, "--lost-kicks"),
            (self.late_timers, "--late-timers"),
            (self.lost_releases, "--lost-releases"),
            (self.lost_events, "--lost-events"),
            (self.stuck_queues, "--stuck-queues"),
            (self.unwatched, "--unwatched"),
        ];
        let given = options.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, option)| option.to_string()).collect()
    }
}

fn main() -> ExitCode {
    let done = match Options::parse().task {
        Task::Run {
            what,
            timeline,
            findings,
            seconds,
        } => {
            let settings = Settings {
                faults: what.faults(),
                limits: what.only.clone(),
                recorded: timeline,
                watched: !what.unwatched,
                most_findings: findings,
                longest: seconds.map(Duration::from_secs),
                ..Settings::default()
            };
            return one(&what, &settings);
        }
        Task::Shrink { what, seconds } => shrink(&what, Duration::from_secs(seconds)),
        Task::Search {
            seed,
            seconds,
            jobs,
            known,
            rules,
        } => known
            .map_or_else(|| Ok(Known::default()), |path| Known::read(&path))
            .and_then(|known| {
                let duration = Duration::from_secs(seconds);
                search::search(seed, duration, jobs.map(usize::from), &known, rules)
            })
            .map(|report| report.failed()),
        Task::Replay(args) => args.execute(),
        Task::Scale(args) => args.execute().map(|()| false),
        Task::Compare(args) => args.execute(),
    };
    match done {
        Ok(failed) => ExitCode::from(u8::from(failed)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sfs_model: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Makes a finding small and shows it. Returns true if there is none.
fn shrink(what: &What, time: Duration) -> anyhow::Result<bool> {
    let (limits, faults) = (what.only.clone(), what.options());
    let Some(shrunk) = shrink::shrink(what.seed, what.ms, limits, &faults, time)? else {
        let (seed, ms) = (what.seed, what.ms);
        let _ = writeln!(std::io::stdout(), "seed {seed} has no finding in {ms} ms");
        return Ok(true);
    };
    shrink::show(&shrunk)?;
    Ok(false)
}

/// Runs one seed; the last line is for [`search`].
fn one(what: &What, settings: &Settings) -> ExitCode {
    let (seed, ms) = (what.seed, what.ms);
    let outcome = machine::run(seed, ms * 1_000_000, settings);
    let mut out = std::io::stdout().lock();
    for (at, event) in &outcome.timeline {
        let _ = writeln!(out, "{:>12.3} ms  {event}", *at as f64 / 1e6);
    }
    for line in &outcome.picture {
        let _ = writeln!(out, "        then     {line}");
    }
    for finding in &outcome.findings {
        let _ = writeln!(out, "{finding}");
    }
    if let Some(loader) = &outcome.loader {
        let _ = writeln!(out, "{loader}");
    }
    if let Some(races) = &outcome.races {
        let (pauses, waits) = (races.pauses, races.waits);
        let _ = writeln!(out, "races: {pauses} pauses, {waits} waits for locks");
    }
    let _ = writeln!(out, "{}", search::last_line(seed, ms, &outcome));
    ExitCode::from(u8::from(!outcome.findings.is_empty()))
}
