//! The guest's side of `sfs_suite stress`: one mix of load after another, TAP on standard output.
//! It needs scx_sfs, sfs_crowd, stress-ng and busybox in PATH.
//!
//! A mix is ok if its own programs succeed, scx_sfs is still enabled at its end and leaves when
//! told to, and the kernel has not complained.

mod mix;

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use mix::{Mix, Settings};
use sfs_testbed::clock::{now, since};

/// Messages that the kernel should not print.
const COMPLAINTS: [&str; 7] = [
    "BUG",
    "WARNING",
    "Oops",
    "soft lockup",
    "hung_task",
    "blocked for more",
    "starved",
];

#[derive(Parser)]
#[command(
    about = "Loads scx_sfs in a guest and puts it under mixes of load",
    version
)]
struct Options {
    /// Seconds for each mix
    #[arg(long, value_name = "S", default_value = "45")]
    seconds: u32,
    /// Cycles of the mixes that load and unload
    #[arg(long, value_name = "N", default_value = "200")]
    cycles: u32,
    /// Options of scx_sfs
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    args: String,
    /// The mixes (default: all)
    #[arg(value_name = "MIX")]
    mixes: Vec<Mix>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let settings = Settings {
        cpus: std::thread::available_parallelism()?.get(),
        seconds: options.seconds,
        cycles: options.cycles,
        arguments: options.args.split_whitespace().map(str::to_owned).collect(),
    };
    let mixes = match options.mixes {
        all if all.is_empty() => Mix::ALL.to_vec(),
        some => some,
    };
    println!("TAP version 14\n1..{}", mixes.len());
    let mut failed = 0;
    for (mix, number) in mixes.iter().zip(1..) {
        let (ok, took) = judge(*mix, &settings)?;
        let verdict = if ok { "ok" } else { "not ok" };
        println!("{verdict} {number} - {mix} # {} s", took.as_secs());
        failed += usize::from(!ok);
    }
    println!(
        "{} passed, {failed} failed, 0 skipped",
        mixes.len() - failed
    );
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Runs a mix; returns whether all was well, and how long it took. What was not is printed.
fn judge(mix: Mix, settings: &Settings) -> Result<(bool, Duration)> {
    kernel_log()?;
    let start = now();
    let result = mix.run(settings);
    if let Err(error) = &result {
        note(format_args!("{error:#}"));
    }
    let said = kernel_log()?;
    let complaints: Vec<_> = said.lines().filter(|line| is_complaint(line)).collect();
    complaints.iter().for_each(note);
    Ok((result.is_ok() && complaints.is_empty(), since(start)))
}

/// Prints a line about the mix.
fn note(text: impl std::fmt::Display) {
    println!("#   {text}");
}

/// Returns what the kernel has said since the last call.
fn kernel_log() -> Result<String> {
    let output = Command::new("dmesg")
        .arg("-c")
        .output()
        .context("cannot run dmesg")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_complaint(line: &str) -> bool {
    let says = |what: &str| line.contains(what);
    COMPLAINTS.iter().any(|what| says(what))
        || (says("rcu:") && says("stall"))
        || (says("sched_ext:") && (says("error") || says("stall") || says("exceeded")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn complaints_of_the_kernel_are_found() {
        for line in [
            "[    1.0] BUG: kernel NULL pointer dereference",
            "[    2.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[    3.0] sched_ext: sfs: runnable task stall (stress-ng[7] failed to run for 30.1s)",
        ] {
            assert!(is_complaint(line), "{line}");
        }
        for line in [
            "[    1.0] sched_ext: BPF scheduler \"sfs\" enabled",
            "[    2.0] Out of memory: Killed process 12 (stress-ng)",
        ] {
            assert!(!is_complaint(line), "{line}");
        }
    }
}
