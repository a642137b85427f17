//! Reports the CPU time that a machine wastes: CPUs that idle while a task
//! waits.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sfs_waste::{total, Report, Watch};

/// Measure wasted CPU time: time for which a CPU idles while a task waits that
/// may run there
///
/// Works under any scheduler. Real-time tasks and tasks in groups with a quota
/// do not count. Neither do stretches of less than 0.1 ms, which a CPU needs to
/// wake up.
#[derive(Parser)]
#[command(
    name = "sfs_waste",
    version,
    max_term_width = 80,
    after_help = "\
Examples, as root:
  sfs_waste --for 10             # ten seconds, and the ten longest stretches
  sfs_waste --for 10 --json      # the same for programs

Exit status: 0 done; 1 an error, which a sentence explains; 2 wrong options."
)]
struct Options {
    /// Watch for this many seconds; default: until Ctrl-C
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,

    /// Watch until standard input ends
    #[arg(long, conflicts_with = "time")]
    until_eof: bool,

    /// Number of stretches to print, longest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    longest: usize,

    /// Memory for scheduling events in MiB, a power of two; a switch or a
    /// wake-up takes 88 bytes
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = memory)]
    memory: u32,

    /// Print `watching` at the start and {"wasted_ms", "longest_wasted_ms",
    /// "watched_ms"} at the end
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "want a number of seconds")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if (0.001..=86_400.0).contains(&seconds) => Ok(time),
        _ => Err("want 0.001 to 86400 seconds".into()),
    }
}

fn memory(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(mib @ 1..=2048_u32) if mib.is_power_of_two() => Ok(mib),
        _ => Err("want a power of two from 1 to 2048".into()),
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sfs_waste: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let signals = block_signals()?;
    let mut watch = Watch::load(options.memory << 20)?;
    watch.start()?;
    if options.json {
        say(&["watching".into()])?;
    } else if options.time.is_none() && !options.until_eof {
        let _ = writeln!(io::stderr(), "watching; press Ctrl-C to stop");
    }
    wait(options, &signals)?;
    let report = watch.stop()?;
    anyhow::ensure!(
        report.lost == 0,
        "{} scheduling events did not fit into {} MiB: watch for a shorter time, or \
         increase --memory",
        report.lost,
        options.memory
    );
    say(&if options.json {
        vec![json(&report)]
    } else {
        words(&report, options.longest)
    })
}

/// Makes signals that end the watch arrive at the returned descriptor.
fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block().context("cannot block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)
        .context("cannot create a descriptor for signals")
}

/// Waits for the end of the watch.
fn wait(options: &Options, signals: &SignalFd) -> Result<()> {
    let timeout = options.time.map_or(Ok(PollTimeout::NONE), |time| {
        PollTimeout::try_from(time).context("the time is too long")
    })?;
    let input = io::stdin();
    let mut ends = vec![signals.as_fd()];
    if options.until_eof {
        ends.push(input.as_fd());
    }
    loop {
        if is_over(&ends, timeout)? {
            return Ok(());
        }
    }
}

/// Waits once. Returns false if standard input only had data.
fn is_over(ends: &[BorrowedFd<'_>], timeout: PollTimeout) -> Result<bool> {
    let mut fds: Vec<PollFd<'_>> = ends
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let ready = match poll(&mut fds, timeout) {
        Err(Errno::EINTR) => return Ok(false),
        ready => ready.context("cannot wait")?,
    };
    if ready == 0 || fds[0].any().unwrap_or(false) {
        return Ok(true);
    }
    Ok(!matches!(io::stdin().read(&mut [0; 4096]), Ok(1..)))
}

fn json(report: &Report) -> String {
    let ms = |ns: u64| (ns / 1000) as f64 / 1e3;
    format!(
        "{{\"wasted_ms\": {}, \"longest_wasted_ms\": {}, \"watched_ms\": {}}}",
        ms(report.wasted_ns()),
        ms(report.longest_ns()),
        ms(report.watched_ns())
    )
}

fn words(report: &Report, longest: usize) -> Vec<String> {
    let stretches = report.longest(longest);
    let stretches = stretches.into_iter().map(ToString::to_string);
    std::iter::once(total(report)).chain(stretches).collect()
}

fn say(lines: &[String]) -> Result<()> {
    let mut out = io::stdout().lock();
    let printed = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot print"),
    }
}
