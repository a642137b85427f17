//! The loader of scx_sfs: puts the kernel half into the kernel, tunes its slice
//! from the arrivals that it reports, switches fair-only mode, and serves
//! statistics. The decisions themselves are in `sfs_policy`.

mod boundary;
mod bpf_intf;
mod bpf_skel;
mod cgroups;
mod control;
mod cpus;
mod hint_command;
mod iat;
mod kernel;
mod learn;
mod left_out;
mod options;
mod preflight;
mod shards;
mod signals;
mod stats;

use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::CommandFactory;
use scx_utils::build_id;
use tracing::{debug, info, warn, Level};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use control::{Control, Outcome};
use options::{Command, Options};
use signals::Signals;

/// The scheduler's name, as in the family of scx schedulers.
const NAME: &str = "scx_sfs";

fn main() -> ExitCode {
    let options = Options::from_command_line();
    init_logging(options.verbose);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("{NAME}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes one line to standard error. That it cannot be written, because a disk is
/// full or a terminal has gone, is no reason to stop scheduling.
fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn run(options: &Options) -> Result<()> {
    match &options.command {
        Some(Command::Hint(hint)) => return hint.run(),
        Some(Command::Functions { count }) => return learn::print_functions((*count).into()),
        None => {}
    }
    if options.version {
        return writeln!(io::stdout(), "{NAME} {}", version()).context("cannot print the version");
    }
    if options.help_stats {
        return stats::describe(&mut io::stdout());
    }
    if let Some(shell) = options.completions {
        return print_completions(shell);
    }

    let signals = Signals::block()?;
    if let Some(interval) = options.monitor {
        return monitor_until_signalled(interval, &signals);
    }
    schedule(options, &signals)
}

/// Prints by way of a buffer, since clap_complete panics where writing fails.
fn print_completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), NAME, &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the completion script"),
    }
}

/// Loads the scheduler and stays until a signal or the kernel ends it; loads it
/// again when the kernel asks for that (CPU hotplug).
fn schedule(options: &Options, signals: &Signals) -> Result<()> {
    let settings = options.settings()?;
    preflight::check()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    info!("{NAME} {} {}", version(), arguments.join(" "));
    preflight::warn_of_limits(options.partial);
    boundary::warn_of_contradictions(options.unit, &options.boundary);
    if let Some(interval) = options.stats {
        std::thread::spawn(move || {
            if let Err(error) = stats::monitor(interval, |why| debug!("{why}")) {
                warn!("no more statistics are printed: {error:#}");
            }
        });
    }
    let mut hints = options.hints.listen()?;
    loop {
        let mut object = MaybeUninit::uninit();
        let mut control = Control::start(options, &settings, &mut object)?;
        match control.run(signals, &mut hints)? {
            Outcome::Restart => info!("the kernel asks for a restart (CPU hotplug)"),
            Outcome::Stop => return Ok(()),
        }
    }
}

fn monitor_until_signalled(interval: Duration, signals: &Signals) -> Result<()> {
    let say = |why: &str| note(&format!("{NAME}: {why}"));
    let monitor = std::thread::spawn(move || stats::monitor(interval, say));
    while !signals.wait(Duration::from_millis(200))? {
        if monitor.is_finished() {
            return monitor
                .join()
                .unwrap_or_else(|_| anyhow::bail!("the monitor has died"));
        }
    }
    Ok(())
}

fn version() -> String {
    build_id::full_version(env!("CARGO_PKG_VERSION"))
}

/// Quiet by default: one line at start, then what an operator must know. What
/// the libraries say (benign by experience) is for --verbose.
fn init_logging(verbose: bool) {
    let filter = if verbose {
        Targets::new().with_default(Level::DEBUG)
    } else {
        Targets::new()
            .with_target(env!("CARGO_CRATE_NAME"), Level::INFO)
            .with_default(Level::ERROR)
    };
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let lines = if verbose {
        lines.with_timer(fmt::time::uptime()).boxed()
    } else {
        lines.without_time().boxed()
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}
