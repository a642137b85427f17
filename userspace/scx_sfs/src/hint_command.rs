//! `scx_sfs hint`: sends hints from a shell or a script.

use std::io::{self, BufRead, Read};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::{value_parser, Args};
use sfs_hint::address::DEFAULT_PATH;
use sfs_hint::{hints, Address, Client, Delivery, Form, Hint, MAX_DATAGRAM_BYTES};

/// Maximum time in microseconds that fits into 64 bits of ns.
const MAX_US: u64 = u64::MAX / 1000;

/// Longest wait for a listener that is behind. After that, hints that do not fit are dropped at
/// once until it catches up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two attempts to send to a full socket.
const RETRY: Duration = Duration::from_micros(200);

/// Backlog that a late sender may catch up with at once.
const BURST: Duration = Duration::from_millis(10);

/// Number of rejected lines that are explained; the others are only counted.
const EXPLAINED: u64 = 10;

/// Tell a running scx_sfs that a process begins an invocation.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  scx_sfs hint --function resize 4711
  generate-hints | scx_sfs hint --stdin --rate 1000")]
pub struct HintCommand {
    /// Address at which scx_sfs listens (its --hint-listen).
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_PATH)]
    pub to: Address,

    /// Send the binary form instead of text.
    #[arg(long)]
    pub binary: bool,

    /// The process that serves the invocation.
    #[arg(required_unless_present = "stdin", value_parser = value_parser!(i32).range(1..))]
    pub pid: Option<i32>,

    /// When the request arrived, in microseconds of CLOCK_MONOTONIC or since
    /// 1970; default: now.
    #[arg(long, value_name = "US", value_parser = value_parser!(u64).range(1..=MAX_US))]
    pub arrival_us: Option<u64>,

    /// Name of the function, up to 64 bytes.
    #[arg(long, value_name = "NAME", value_parser = parse_function)]
    pub function: Option<String>,

    /// CPU time that the invocation will need, in microseconds; for experiments
    /// with a scheduler that knows it.
    #[arg(long, value_name = "US", value_parser = value_parser!(u64).range(1..=MAX_US))]
    pub service_us: Option<u64>,

    /// When the process started, in clock ticks since boot (field 22 of
    /// /proc/PID/stat). scx_sfs refuses the hint if the id then belongs to
    /// another process.
    #[arg(long, value_name = "TICKS", value_parser = value_parser!(u64).range(1..))]
    pub start: Option<u64>,

    /// Send the lines of standard input, each a hint in text form.
    #[arg(long, conflicts_with_all = ["pid", "arrival_us", "function", "service_us", "start"])]
    pub stdin: bool,

    /// Send at most N lines a second [1..=10000000].
    #[arg(long, value_name = "N", requires = "stdin", conflicts_with = "pid",
          value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub rate: Option<u32>,
}

fn parse_function(name: &str) -> Result<String, sfs_hint::Problem> {
    sfs_hint::hint::check_function(name)?;
    Ok(name.to_owned())
}

impl HintCommand {
    /// Sends the requested hints.
    ///
    /// # Errors
    ///
    /// Nobody listens, the listener is too slow, or some lines are not hints.
    pub fn run(&self) -> Result<()> {
        let form = if self.binary {
            Form::Binary
        } else {
            Form::Text
        };
        let client = Client::connect(&self.to, form).with_context(|| {
            format!(
                "cannot send hints to {}: does scx_sfs run with --hint-listen?",
                self.to
            )
        })?;
        let mut sender = Sender {
            client,
            patient: true,
        };
        match self.pid {
            Some(pid) => self.send_one(pid, &mut sender),
            None => send_lines(&mut io::stdin().lock(), &mut sender, self.rate),
        }
    }

    fn send_one(&self, pid: i32, sender: &mut Sender) -> Result<()> {
        let hint = Hint {
            pid,
            arrived_at_ns: self.arrival_us.map(|us| us * 1000),
            function: self.function.clone(),
            service_ns: self.service_us.map(|us| us * 1000),
            started_ticks: self.start,
        };
        if !sender.send(&hint)? {
            bail!("the hint was dropped: {} does not keep up", self.to);
        }
        Ok(())
    }
}

/// A client that can wait and retry, unlike a platform.
struct Sender {
    client: Client,
    /// Whether the listener has kept up so far.
    patient: bool,
}

impl Sender {
    /// Sends a hint. Returns whether it was sent.
    fn send(&mut self, hint: &Hint) -> Result<bool> {
        let begun = Instant::now();
        while self.client.send(hint)? == Delivery::Dropped {
            if !self.patient || begun.elapsed() > PATIENCE {
                self.patient = false;
                return Ok(false);
            }
            thread::sleep(RETRY);
        }
        self.patient = true;
        Ok(true)
    }
}

fn send_lines(input: &mut impl BufRead, sender: &mut Sender, rate: Option<u32>) -> Result<()> {
    let mut tally = Tally::default();
    let result = send_each_line(input, sender, Pace::new(rate), &mut tally);
    let Tally {
        sent,
        dropped,
        refused,
        ..
    } = tally;
    sfs_text::note(&format!(
        "{sent} hints sent, {dropped} dropped, {refused} lines refused"
    ));
    result?;
    if dropped + refused > 0 {
        bail!("{} hints were not sent", dropped + refused);
    }
    Ok(())
}

fn send_each_line(
    input: &mut impl BufRead,
    sender: &mut Sender,
    mut pace: Pace,
    tally: &mut Tally,
) -> Result<()> {
    let mut line = Vec::new();
    while next_line(input, &mut line).context("cannot read standard input")? {
        tally.line += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        // Each line is one hint or one error.
        for hint in hints(&line) {
            match hint {
                Ok(hint) => {
                    pace.wait();
                    let sent = sender.send(&hint.to_hint())?;
                    tally.count(sent);
                }
                Err(error) => tally.refuse(&error.problem),
            }
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Tally {
    line: u64,
    sent: u64,
    dropped: u64,
    refused: u64,
}

impl Tally {
    fn count(&mut self, sent: bool) {
        if sent {
            self.sent += 1;
        } else {
            self.dropped += 1;
        }
    }

    fn refuse(&mut self, problem: &sfs_hint::Problem) {
        self.refused += 1;
        if self.refused <= EXPLAINED {
            sfs_text::note(&format!("{}: line {}: {problem}", sfs_bpf::NAME, self.line));
        }
    }
}

/// Reads a line without its end into `line`. Of a line too long for a hint, it keeps just
/// enough to show that. Returns false at the end of the input.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let most = MAX_DATAGRAM_BYTES as u64 + 1;
    if input.by_ref().take(most).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_DATAGRAM_BYTES {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

/// Limits the sending rate.
struct Pace {
    interval: Duration,
    due: Instant,
}

impl Pace {
    fn new(rate: Option<u32>) -> Self {
        Self {
            interval: rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate),
            due: Instant::now(),
        }
    }

    fn wait(&mut self) {
        if self.interval.is_zero() {
            return;
        }
        let now = Instant::now();
        thread::sleep(self.due.saturating_duration_since(now));
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.due = self.due.max(earliest) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_are_told_apart() {
        let long = "x".repeat(3 * MAX_DATAGRAM_BYTES);
        let just = "y".repeat(MAX_DATAGRAM_BYTES);
        let text = format!("1\n{long}\n{just}\n\n2");
        let mut input = text.as_bytes();
        let mut line = Vec::new();
        let mut lengths = Vec::new();
        while next_line(&mut input, &mut line).unwrap() {
            lengths.push(line.len());
        }
        let most = MAX_DATAGRAM_BYTES;
        assert_eq!(lengths, [1, most + 1, most, 0, 1]);
    }

    #[test]
    fn a_rate_is_kept() {
        let begun = Instant::now();
        let mut pace = Pace::new(Some(1000));
        for _ in 0..51 {
            pace.wait();
        }
        assert!(begun.elapsed() >= Duration::from_millis(50) - BURST);
    }
}
