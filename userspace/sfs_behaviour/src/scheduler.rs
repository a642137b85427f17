//! The scheduler under test: starting and stopping scx_sfs, what the kernel says
//! about it, and its statistics.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use scx_stats::StatsClient;
use serde_json::{Map, Value};
use sfs_waste::Span;

/// Statistics as scx_sfs serves them, since load.
pub use sfs_statistics::Metrics as Stats;

use crate::clock::{now, wait_until};

const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Loading takes about a second on an idle emulated machine, and several on a
/// busy one.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// How long unloading may take, and the answer to a request for statistics.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A running scx_sfs. Dropping it kills the loader.
pub struct Scheduler {
    loader: Child,
    log: PathBuf,
    /// Since when the kernel has it enabled, if that has not been noted yet.
    enabled_at: Option<Duration>,
}

impl Scheduler {
    /// Starts `program` with `arguments` and waits until the kernel has enabled
    /// the scheduler.
    ///
    /// # Errors
    ///
    /// It ends instead, or takes too long.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_prepared(program, arguments, |_| {})
    }

    /// As [`Self::start`], after `prepare` has had the command.
    ///
    /// # Errors
    ///
    /// It ends instead, or takes too long.
    pub fn start_prepared(
        program: &Path,
        arguments: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let log = std::env::temp_dir().join("scx_sfs.log");
        let errors = fs::File::create(&log).context("cannot write the loader's log")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        prepare(&mut command);
        let loader = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut scheduler = Self {
            loader,
            log,
            enabled_at: None,
        };
        scheduler.wait_until_enabled()?;
        scheduler.enabled_at = Some(now());
        Ok(scheduler)
    }

    fn wait_until_enabled(&mut self) -> Result<()> {
        let mut ended = None;
        let done = wait_until(LOAD_LIMIT, || {
            ended = self.loader.try_wait().ok().flatten();
            ended.is_some() || state() == "enabled"
        });
        match ended {
            Some(status) => bail!("scx_sfs has ended ({status}): {}", self.log()),
            None if !done => bail!("scx_sfs is not loaded after {LOAD_LIMIT:?}: {}", self.log()),
            None => Ok(()),
        }
    }

    /// Returns the loader's process id.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.loader.id().cast_signed())
    }

    /// Returns the CPU time that the loader's threads have used.
    ///
    /// # Errors
    ///
    /// It is gone.
    pub fn cpu_time(&self) -> Result<Duration> {
        let mut used = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            // A thread may end meanwhile: one of those that serve statistics.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
                continue;
            };
            let ns = text.split_whitespace().next();
            used += ns.context("schedstat is empty")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(used))
    }

    /// Returns what the loader has said on standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends `signal` to the loader.
    ///
    /// # Errors
    ///
    /// It is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(self.pid(), signal).with_context(|| format!("cannot send {signal} to the loader"))
    }

    /// Returns whether the loader is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.loader.try_wait(), Ok(None))
    }

    /// Sends `signal` and waits until the loader has ended and the machine is
    /// back on its default scheduler. Returns how the loader has ended, and
    /// what it has said.
    ///
    /// # Errors
    ///
    /// It does not end, or the kernel keeps the scheduler.
    pub fn stop(mut self, signal: Signal) -> Result<(ExitStatus, String)> {
        self.note_span();
        self.signal(signal)?;
        self.wait_for_end().with_context(|| format!("{signal}"))
    }

    /// Waits until the loader has ended by itself, and the machine is back on its
    /// default scheduler. Returns how the loader has ended, and what it has said.
    ///
    /// # Errors
    ///
    /// It does not end, or the kernel keeps the scheduler.
    pub fn wait_for_end(mut self) -> Result<(ExitStatus, String)> {
        self.note_span();
        let ended = wait_until(ANSWER_LIMIT, || !self.is_alive());
        ensure!(ended, "scx_sfs does not end: {}", self.log());
        let status = self.loader.wait()?;
        wait_until_disabled()?;
        Ok((status, self.log()))
    }

    /// Notes for [`take_spans`] that the scheduler was at work until now.
    fn note_span(&mut self) {
        let Some(from) = self.enabled_at.take() else {
            return;
        };
        let file = OpenOptions::new().create(true).append(true).open(spans());
        // Without it more counts as loading and unloading.
        let _ =
            file.and_then(|mut file| writeln!(file, "{} {}", from.as_nanos(), now().as_nanos()));
    }

    /// Stops the scheduler as an operator does, and expects no complaint.
    ///
    /// # Errors
    ///
    /// The loader fails; then the kernel may have ejected the scheduler.
    pub fn finish(self) -> Result<()> {
        let (status, log) = self.stop(Signal::SIGINT)?;
        ensure!(status.success(), "scx_sfs has failed ({status}): {log}");
        ensure!(
            log.contains("unregistered from user space"),
            "the exit is not one that was asked for: {log}"
        );
        Ok(())
    }

    /// Returns the statistics since load.
    ///
    /// # Errors
    ///
    /// The loader does not answer.
    pub fn stats(&self) -> Result<Stats> {
        // A connection of its own: counters are since load in its first answer.
        let limit = u64::try_from(ANSWER_LIMIT.as_millis())?;
        StatsClient::new()
            .connect(Some(limit))
            .and_then(|mut client| client.request("stats", Vec::new()))
            .and_then(with_the_rest)
            .with_context(|| format!("no statistics from scx_sfs: {}", self.log()))
    }

    /// Waits until the statistics are as wanted, and returns them.
    ///
    /// # Errors
    ///
    /// They do not become so; `what` says what was waited for.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Stats) -> bool) -> Result<Stats> {
        let mut stats = self.stats()?;
        let done = wait_until(ANSWER_LIMIT, || match self.stats() {
            Ok(latest) => {
                stats = latest;
                wanted(&stats)
            }
            Err(_) => false,
        });
        ensure!(done, "waited in vain for {what}: {stats:?}");
        Ok(stats)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.note_span();
        if self.is_alive() {
            let _ = self.loader.kill();
            let _ = self.loader.wait();
            let _ = wait_until_disabled();
        }
    }
}

/// Reads statistics. What is not served is nothing, so that the cases can be run with a
/// loader of before.
fn with_the_rest(served: Map<String, Value>) -> Result<Stats> {
    let mut all = serde_json::to_value(Stats::default())?;
    if let Some(all) = all.as_object_mut() {
        all.extend(served);
    }
    Ok(serde_json::from_value(all)?)
}

fn spans() -> PathBuf {
    std::env::temp_dir().join("sfs_behaviour.spans")
}

/// Returns from when to when, in ns of [`now`], schedulers have been at work since the last
/// time, in whichever process of the suite: not while they were loaded and unloaded.
pub fn take_spans() -> Vec<Span> {
    let text = fs::read_to_string(spans()).unwrap_or_default();
    let _ = fs::remove_file(spans());
    let span = |line: &str| {
        let (from, to) = line.split_once(' ')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    text.lines().filter_map(span).collect()
}

/// Runs `command` to its end and returns what it has said.
///
/// # Errors
///
/// It cannot be started.
pub fn output_of(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .context("cannot run scx_sfs")
}

/// Returns the kernel's word for the state of sched_ext.
pub fn state() -> String {
    read(&format!("{SCHED_EXT}/state"))
}

/// Returns the name of the scheduler that is loaded, or an empty string.
pub fn ops() -> String {
    read(&format!("{SCHED_EXT}/root/ops"))
}

/// Returns how many schedulers have been enabled since boot.
pub fn enable_seq() -> u64 {
    read(&format!("{SCHED_EXT}/enable_seq"))
        .parse()
        .unwrap_or(0)
}

/// Waits until no scheduler is loaded.
///
/// # Errors
///
/// One stays.
pub fn wait_until_disabled() -> Result<()> {
    let done = wait_until(ANSWER_LIMIT, || state() == "disabled");
    ensure!(done, "the scheduler {} stays: {}", ops(), state());
    Ok(())
}

/// Removes what loaders leave for the next one.
///
/// # Errors
///
/// It cannot be removed.
pub fn forget_history() -> Result<()> {
    match fs::remove_file("/run/scx_sfs/history.json") {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("cannot remove the history of schedulers")
        }
        _ => Ok(()),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_loader_of_before_does_not_serve_is_nothing() {
        let served = serde_json::json!({"arrivals": 7, "policy": "sfs"});
        let stats = with_the_rest(served.as_object().unwrap().clone()).unwrap();
        assert_eq!((stats.arrivals, stats.policy.as_str()), (7, "sfs"));
        assert_eq!((stats.ejections, stats.completions), (0, 0));
        let wrong = serde_json::json!({"arrivals": "many"});
        assert!(with_the_rest(wrong.as_object().unwrap().clone()).is_err());
    }
}
