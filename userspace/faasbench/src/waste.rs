//! Watches for CPUs that idle while a task waits that may run there, during a
//! replay.
//!
//! A separate program, `sfs_waste`, watches: its memory would make each fork of
//! this one slower.

use anyhow::{bail, Context, Result};
use faas_data::output::note;
use faas_data::trace::Trace;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The program that watches.
const PROGRAM: &str = "sfs_waste";

/// Memory per event, in bytes.
const EVENT: u64 = 88;

/// Minimum and maximum memory for events, in MiB.
const MEMORY: std::ops::RangeInclusive<u64> = 16..=512;

/// Room for events: mean number of switches and wake-ups per CPU and
/// millisecond. Beyond this the wasted time is unknown, and a note says why.
const EVENTS_PER_MS: u64 = 1;

/// Additional room for switches and wake-ups per invocation.
const EVENTS_PER_INVOCATION: u64 = 24;

/// The wasted CPU time, as the program prints it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Wasted {
    /// CPU time that idle CPUs could have given to waiting tasks, in milliseconds.
    pub wasted_ms: f64,
    /// The longest stretch for which a CPU idled while a task waited, in
    /// milliseconds.
    pub longest_wasted_ms: f64,
}

/// Watches from [`Watch::begin`] to [`Watch::end`].
pub struct Watch {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Watch {
    /// Begins to watch a replay of `trace` on `cpus` CPUs, or prints a note why
    /// not. Does nothing if the program is not installed.
    pub fn begin(trace: &Trace, cpus: u32) -> Option<Self> {
        let program = program()?;
        let memory = memory(trace, cpus).to_string();
        Self::start(Command::new(program).args(["--until-eof", "--json", "--memory", &memory]))
            .inspect_err(tell)
            .ok()
    }

    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}"))?;
        let output = child.stdout.take().context("no standard output")?;
        let mut watch = Self {
            child,
            output: BufReader::new(output),
        };
        let mut line = String::new();
        watch.output.read_line(&mut line)?;
        if line != "watching\n" {
            bail!("{}", watch.complaint());
        }
        Ok(watch)
    }

    /// Stops watching. Returns the wasted CPU time, or prints a note why it is unknown.
    pub fn end(mut self) -> Option<Wasted> {
        self.stop().inspect_err(tell).ok()
    }

    fn stop(&mut self) -> Result<Wasted> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{}", self.complaint());
        }
        serde_json::from_str(&line).with_context(|| format!("{PROGRAM} printed: {line}"))
    }

    /// The last line of the program's standard error.
    fn complaint(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        match said.lines().last() {
            Some(line) => line.to_string(),
            None => format!("{PROGRAM} has ended"),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn tell(why: &anyhow::Error) {
    note(&format!("note: wasted CPUs are not watched: {why:#}"));
}

/// The program, beside this one or in the usual folder.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.to_path_buf()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders
        .map(|folder| folder.join(PROGRAM))
        .find(|file| file.is_file())
}

/// Memory for the events of a replay, in MiB: a power of two.
fn memory(trace: &Trace, cpus: u32) -> u64 {
    let cpus = u64::from(cpus.max(1));
    let invocations = &trace.invocations;
    let last_us = invocations.last().map_or(0, |one| one.arrival_us);
    let busy_us = invocations.iter().map(|one| one.service_us()).sum::<u64>() / cpus;
    let events = (last_us + busy_us) / 1000 * EVENTS_PER_MS * cpus
        + invocations.len() as u64 * EVENTS_PER_INVOCATION;
    let mib = (events * EVENT) >> 20;
    mib.clamp(*MEMORY.start(), *MEMORY.end())
        .next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::trace::Invocation;

    fn trace(count: u64) -> Trace {
        let call = |i| Invocation::cpu(i * 1000, "f", 3000);
        Trace {
            name: "t".into(),
            sha256: String::new(),
            invocations: (0..count).map(call).collect(),
        }
    }

    fn script(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn memory_grows_with_the_trace_within_bounds() {
        let memory = |count, cpus| memory(&trace(count), cpus);
        assert_eq!(memory(1, 0), 16);
        assert_eq!(memory(10, 4), 16);
        assert_eq!(memory(10_000, 4), 32);
        assert_eq!(memory(50_000, 4), 256);
        assert_eq!(memory(10_000_000, 192), 512);
    }

    #[test]
    fn the_last_line_of_the_program_is_the_result() {
        let json = r#"{"wasted_ms": 1.5, "longest_wasted_ms": 0.5, "watched_ms": 7}"#;
        let text = format!("echo watching; cat >/dev/null; echo '{json}'");
        let mut watch = Watch::start(&mut script(&text)).unwrap();
        let expected = Wasted {
            wasted_ms: 1.5,
            longest_wasted_ms: 0.5,
        };
        assert_eq!(watch.stop().unwrap(), expected);
    }

    #[test]
    fn errors_of_the_program_are_reported() {
        let refused = Watch::start(&mut script("echo 'sfs_waste: only root' >&2; exit 1"));
        let error = refused.err().unwrap().to_string();
        assert_eq!(error, "sfs_waste: only root");

        let text = "echo watching; cat >/dev/null; echo 'sfs_waste: too much' >&2; exit 1";
        let error = Watch::start(&mut script(text)).unwrap().stop();
        assert_eq!(error.unwrap_err().to_string(), "sfs_waste: too much");

        let error = Watch::start(&mut script("exit 3")).err().unwrap();
        assert_eq!(error.to_string(), "sfs_waste has ended");
        assert!(Watch::start(&mut Command::new("/no/such/program")).is_err());
    }
}
