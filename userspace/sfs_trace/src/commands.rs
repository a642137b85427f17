//! `scx_sfs trace` and `scx_sfs explain`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use sfs_cgroups::SandboxPattern;
use sfs_text::note;

use crate::explain::{text, Explainer};
use crate::follow::{follow, Plan};
use crate::perfetto::Tracer;

/// What both commands share.
#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    /// Only invocations in this cgroup and below; a path below /sys/fs/cgroup in
    /// which each name may be a pattern, as with --cgroup of scx_sfs itself; may
    /// be repeated.
    #[arg(long, value_name = "PATH", value_parser = SandboxPattern::parse)]
    pub cgroup: Vec<SandboxPattern>,

    /// Memory for scheduling events that are not read yet, in MiB, a power of
    /// two [1..=1024]. A switch takes 184 bytes.
    #[arg(long, value_name = "MIB", default_value = "16", value_parser = mebibytes)]
    pub buffer: u32,
}

impl WatchOptions {
    fn plan(&self, time: Option<Duration>, program: &'static str) -> Plan {
        Plan {
            time,
            buffer: self.buffer << 20,
            patterns: self.cgroup.clone(),
            program,
        }
    }
}

/// Write a trace of invocations for Perfetto's viewer: who runs on each CPU, and
/// what each invocation does (queued, running, blocked, parked, displaced).
///
/// It runs beside a scheduler that is loaded already, as root. Beside another
/// scheduler than scx_sfs it has less detail, and says what is missing.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Open the file at ui.perfetto.dev, which reads it in the browser.

Example:
  scx_sfs trace --seconds 5 -o trace.pftrace")]
pub struct TraceCommand {
    /// Length of the trace in seconds; without it until Ctrl-C.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// The file for the trace.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,

    /// What to watch.
    #[command(flatten)]
    pub watch: WatchOptions,
}

/// Tell why requests were slow: keep the slowest invocations, and print where their
/// time went and who ran instead.
///
/// It runs beside a scheduler that is loaded already, as root. Beside another
/// scheduler than scx_sfs it has less detail, and says what is missing.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  scx_sfs explain --slower-than 500ms                # until Ctrl-C
  scx_sfs explain --slower-than 1s --seconds 60 --json | jq '.slowest[0].parts'")]
pub struct ExplainCommand {
    /// Only invocations that take this long or longer: 500ms, 2s, 300us.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub slower_than: Duration,

    /// Length of the watch in seconds; without it until Ctrl-C.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Number of invocations to explain, slowest first [1..=1000].
    #[arg(long, value_name = "N", default_value = "10",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub top: u16,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// What to watch.
    #[command(flatten)]
    pub watch: WatchOptions,
}

impl TraceCommand {
    /// Writes the trace.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program that reports events, or the file cannot be written.
    pub fn run(&self) -> Result<()> {
        let cannot = || format!("cannot write {}", self.output.display());
        let file = File::create(&self.output).with_context(cannot)?;
        let mut tracer = Tracer::new(BufWriter::new(file));
        let plan = self.watch.plan(self.seconds, "scx_sfs trace");
        let followed = follow(&plan, &mut tracer)?;
        let written = tracer.finish(&followed).with_context(cannot)?;
        note(&format!(
            "scx_sfs trace: {} invocations and {} stays on CPUs in {:.1} s, in {}",
            written.invocations,
            written.runs,
            (followed.to - followed.from) as f64 / 1e9,
            self.output.display()
        ));
        Ok(())
    }
}

impl ExplainCommand {
    /// Watches, and prints the report.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program that reports events, or nothing can be printed.
    pub fn run(&self) -> Result<()> {
        let limit = u64::try_from(self.slower_than.as_nanos()).context("the time is too long")?;
        let mut explainer = Explainer::new(limit, self.top.into());
        let plan = self.watch.plan(self.seconds, "scx_sfs explain");
        let followed = follow(&plan, &mut explainer)?;
        let report = explainer.report(&followed);
        let text = if self.json {
            serde_json::to_string_pretty(&report).context("the report is no JSON")? + "\n"
        } else {
            text(&report)
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).context("cannot print the report")
            }
            _ => Ok(()),
        }
    }
}

/// Parses a time such as 500ms.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err("want a number with us, ms or s, such as 500ms".into()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "want a number with us, ms or s, such as 500ms")?;
    match Duration::try_from_secs_f64(number * unit) {
        Ok(time) if (1e-6..=3600.0).contains(&time.as_secs_f64()) => Ok(time),
        _ => Err("want 1us to 3600s".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "want a number of seconds")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if (0.001..=86_400.0).contains(&seconds) => Ok(time),
        _ => Err("want 0.001 to 86400 seconds".into()),
    }
}

fn mebibytes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(mib @ 1..=1024_u32) if mib.is_power_of_two() => Ok(mib),
        _ => Err("want a power of two from 1 to 1024".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("300us"), Ok(Duration::from_micros(300)));
        for wrong in [
            "", "500", "ms", "-1ms", "1h", "1 s", "0s", "1e9s", "4000s", "1.2.3s",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "1e6", "x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(mebibytes("32"), Ok(32));
        for wrong in ["0", "3", "2048", "-1", "x"] {
            assert!(mebibytes(wrong).is_err(), "{wrong}");
        }
    }
}
