//! A real-time task keeps the CPU until the kernel ejects the scheduler.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};

use super::checks::Check;
use super::history;
use super::service::{
    await_active, await_failure, expect_journal, expect_statistics, start, systemctl,
};
use super::wait::{pause, within};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "a stall of 30 s: ejected with status 3, loaded again after a pause",
        run: restarts_after_a_stall,
    },
    Check {
        name: "the third ejection within an hour is the last: status 7",
        run: third_stall_is_the_last,
    },
];

/// Seconds after which RCU reports a stall.
const RCU_LIMIT: &str = "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout";

/// Seconds for which the task keeps the CPU: longer than the kernel lets others wait.
const SECONDS: &str = "34";

/// Exit status of timeout when the time is over.
const TIME_IS_OVER: i32 = 124;

/// What the loader says of the third ejection, as in docs/runbook.md.
const LAST: &str = "the service stays stopped";

/// Starts the service after raising RCU's limit: RCU sees the same stall after 21 s and ends the
/// scheduler itself ("RCU CPU stall detected!", status 4), and the watchdog is under test here. A
/// grace period keeps the limit with which it began, so that has to end before the stall.
fn start_without_rcu() -> Result<()> {
    fs::write(RCU_LIMIT, "120").with_context(|| format!("cannot write {RCU_LIMIT}"))?;
    start()?;
    pause(1);
    Ok(())
}

/// A real-time task keeps the CPU. Its priority is below that of the kernel's thread that unloads
/// a scheduler, and that of what ends it is above.
fn stall() -> Result<()> {
    let this = env::current_exe().context("cannot tell where this program is")?;
    let mut command = Command::new("chrt");
    command.args(["-f", "60", "timeout", SECONDS, "chrt", "-f", "1"]);
    let status = command.arg(this).arg("spin").stdin(Stdio::null()).status();
    let status = status.context("cannot run chrt")?;
    let is_over = status.code() == Some(TIME_IS_OVER);
    ensure!(is_over, "the task that keeps the CPU ended with {status}");
    Ok(())
}

fn restarts_after_a_stall() -> Result<()> {
    start_without_rcu()?;
    stall()?;
    // The loader, which had no CPU meanwhile, has to write that down first.
    if within(20, "an ejection", history::has_ejection).is_err() {
        bail!("no ejection is in the history: {}", history::text());
    }
    // The loader waits for the rest of 10 s, then loads.
    await_active(40)?;
    expect_journal("stall")?;
    expect_journal("status=3")?;
    expect_statistics("the last one stalled", |stats| stats.last_exit == "stalled")?;
    Ok(())
}

/// A second one, of an hour ago and less, takes the place of another 40 s.
fn third_stall_is_the_last() -> Result<()> {
    systemctl("stop")?;
    history::double_ejections()?;
    start_without_rcu()?;
    stall()?;
    await_failure(20, "7")?;
    expect_journal(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runbook_has_the_message() {
        // Its test compares it with the loader.
        assert!(include_str!("../../../../docs/runbook.md").contains(LAST));
    }
}
