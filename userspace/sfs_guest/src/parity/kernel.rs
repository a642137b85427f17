//! Rows that load the kernel: stressors, messages, wake-ups. Each returns a value and its
//! unit, or the reason why there is none.

use std::fs;
use std::process::Command;

use anyhow::{bail, Result};

use super::figures::{field, last_before, milliseconds, only_seconds};
use super::{enter, measured, value_of, LIMIT};
use crate::programs::{self, Ended};

/// The time of a stressor: in virtual time it repeats exactly.
const STRESS: &str = "1s";

/// Where stress-ng writes its figures; the same file in /debian.
const METRICS: &str = "/tmp/metrics";

/// A stressor of stress-ng, with so many instances.
pub fn stress(name: &str, instances: &str) -> Result<String> {
    // There is none at first.
    let _ = fs::remove_file(METRICS);
    let ended = enter(&[
        "/usr/bin/stress-ng",
        "--quiet",
        "--timeout",
        STRESS,
        "--temp-path",
        "/tmp",
        "--metrics",
        "--yaml",
        METRICS,
        &format!("--{name}"),
        instances,
    ])?;
    let metrics = fs::read_to_string(METRICS).unwrap_or_default();
    let rate = field(&metrics, "bogo-ops-per-second-real-time:", 1)
        .filter(|rate| rate.parse().is_ok_and(|rate: f64| rate > 0.0));
    match rate {
        Some(rate) => Ok(format!("{rate} ops/s")),
        None => bail!("status {} {}", ended.status, ended.last_line()),
    }
}

/// hackbench through a `pipe` or `socket`, of `process`es or `thread`s.
pub fn hackbench(through: &str, of: &str, groups: usize) -> Result<String> {
    let groups = groups.to_string();
    let mut arguments = vec!["/usr/bin/hackbench"];
    if through == "pipe" {
        arguments.push("--pipe");
    }
    let kind = if of == "process" {
        "--process"
    } else {
        "--threads"
    };
    arguments.extend([kind, "--groups", &groups, "--fds", "10", "--loops", "20"]);
    let ended = enter(&arguments)?;
    let time = field(&ended.output, "Time:", 1).and_then(milliseconds);
    value_of(&ended, time)
}

fn crowd(arguments: &[&str]) -> Result<Ended> {
    programs::run(Command::new("sfs_crowd").args(arguments), LIMIT)
}

/// Handoffs through a `pipe`, `socket` or `futex` in so many rings.
pub fn handoffs(through: &str, rings: &str) -> Result<String> {
    let arguments = ["handoffs", "--through", through, "--rings", rings];
    let ended = crowd(&[&arguments[..], &["--rounds", "3000"]].concat())?;
    let rate = ended.output.lines().next();
    value_of(&ended, rate.map(|rate| format!("{rate} ops/s")))
}

/// The 99th percentile that sfs_crowd with these arguments prints.
pub fn latency(arguments: &[&str]) -> Result<String> {
    let ended = crowd(arguments)?;
    let p99 = field(&ended.output, "mean", 3).map(|p99| format!("{p99} us"));
    value_of(&ended, p99)
}

/// A benchmark of `perf bench`: a second of it, or as much work as it does by default.
pub fn perf(collection: &str, name: &str, cpus: usize) -> Result<String> {
    let cpus = cpus.to_string();
    let bench = |options: &[&str]| {
        let ended = enter(&[&["/usr/bin/perf", "bench"], options].concat())?;
        Ok::<_, anyhow::Error>(ended.output + &ended.errors)
    };
    let rate = |text: String| last_before(&text, "operations/sec").map(|n| format!("{n} ops/s"));
    let value = match (collection, name) {
        ("sched", "messaging") => {
            let options = [
                "-f",
                "simple",
                "sched",
                "messaging",
                "-g",
                &cpus,
                "-l",
                "20",
            ];
            only_seconds(&bench(&options)?)
        }
        ("sched", "pipe") => {
            only_seconds(&bench(&["-f", "simple", "sched", "pipe", "-l", "5000"])?)
        }
        ("futex", "hash" | "lock-pi") => rate(bench(&["futex", name, "-r", "1", "-s"])?),
        ("futex", _) => {
            let text = bench(&["futex", name, "-s"])?;
            last_before(&text, "ms").map(|time| format!("{time} ms"))
        }
        ("epoll", _) => rate(bench(&["epoll", name, "-r", "1", "-t", &cpus])?),
        _ => None,
    };
    measured(value)
}
