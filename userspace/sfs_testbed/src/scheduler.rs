//! The scheduler under test: start and stop of scx_sfs, its state in the kernel, and its
//! statistics.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use scx_stats::StatsClient;
use serde_json::{Map, Value};
use sfs_waste::Span;

/// Statistics since load, as served by scx_sfs.
pub use sfs_statistics::Metrics as Stats;

use crate::clock::{now, wait_until};
use crate::process::cpu_time_of;

const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// In the loader's log on kernels before 6.17, which do not report quotas to a scheduler.
pub const NOT_TOLD: &str = "does not tell a scheduler of cpu.max";

/// Time limit of loading and of unloading on up to 8 CPUs. Loading takes about a second on an idle
/// emulated machine. Busy emulated CPUs share one host thread, so that it takes longer the more
/// of them there are.
const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// Time limit of an answer to a request for statistics.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A running scx_sfs. Dropping it kills the loader.
pub struct Scheduler {
    loader: Child,
    log: PathBuf,
    /// When the kernel enabled the scheduler; `None` once the span is recorded.
    enabled_at: Option<Duration>,
}

impl Scheduler {
    /// Starts `program` with `arguments` and waits until the kernel has enabled the scheduler.
    ///
    /// # Errors
    ///
    /// The loader ends, or takes too long.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_prepared(program, arguments, |_| {})
    }

    /// Like [`Self::start`], after `prepare` has changed the command.
    ///
    /// # Errors
    ///
    /// The loader ends, or takes too long.
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
        let limit = load_limit();
        let done = wait_until(limit, || {
            ended = self.loader.try_wait().ok().flatten();
            ended.is_some() || state() == "enabled"
        });
        match ended {
            Some(status) => bail!("scx_sfs ended ({status}): {}", self.log()),
            None if !done => bail!("scx_sfs is not loaded after {limit:?}: {}", self.log()),
            None => Ok(()),
        }
    }

    /// Returns the loader's process id.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.loader.id().cast_signed())
    }

    /// Returns the CPU time used by the loader's threads.
    ///
    /// # Errors
    ///
    /// The loader is gone.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time_of(self.pid())
    }

    /// Returns the loader's standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends `signal` to the loader.
    ///
    /// # Errors
    ///
    /// The loader is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(self.pid(), signal).with_context(|| format!("cannot send {signal} to the loader"))
    }

    /// Returns whether the loader still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.loader.try_wait(), Ok(None))
    }

    /// Sends `signal` and waits until the loader has ended and the machine is on its default
    /// scheduler. Returns the loader's exit status and log.
    ///
    /// # Errors
    ///
    /// The loader does not end, or the kernel keeps the scheduler.
    pub fn stop(mut self, signal: Signal) -> Result<(ExitStatus, String)> {
        self.note_span();
        self.signal(signal)?;
        self.wait_for_end().with_context(|| format!("{signal}"))
    }

    /// Waits until the loader has ended by itself and the machine is on its default scheduler.
    /// Returns the loader's exit status and log.
    ///
    /// # Errors
    ///
    /// The loader does not end, or the kernel keeps the scheduler.
    pub fn wait_for_end(mut self) -> Result<(ExitStatus, String)> {
        self.note_span();
        let ended = wait_until(load_limit(), || !self.is_alive());
        ensure!(ended, "scx_sfs does not end: {}", self.log());
        let status = self.loader.wait()?;
        wait_until_disabled()?;
        Ok((status, self.log()))
    }

    /// Records for [`take_spans`] that the scheduler was enabled until now.
    fn note_span(&mut self) {
        let Some(from) = self.enabled_at.take() else {
            return;
        };
        let file = OpenOptions::new().create(true).append(true).open(spans());
        // Without it the span counts as loading and unloading.
        let _ =
            file.and_then(|mut file| writeln!(file, "{} {}", from.as_nanos(), now().as_nanos()));
    }

    /// Stops the scheduler with SIGINT, and expects a requested exit with status 0.
    ///
    /// # Errors
    ///
    /// The loader fails, for example because the kernel ejected the scheduler.
    pub fn finish(self) -> Result<()> {
        let (status, log) = self.stop(Signal::SIGINT)?;
        ensure!(status.success(), "scx_sfs has failed ({status}): {log}");
        ensure!(
            log.contains("unregistered from user space"),
            "the exit was not requested: {log}"
        );
        Ok(())
    }

    /// Returns the statistics since load.
    ///
    /// # Errors
    ///
    /// The loader does not answer.
    pub fn stats(&self) -> Result<Stats> {
        stats().with_context(|| format!("no statistics from scx_sfs: {}", self.log()))
    }

    /// Waits until `wanted` is true of the statistics, and returns them; `what` describes that in
    /// an error.
    ///
    /// # Errors
    ///
    /// It does not become true within 10 s.
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

/// Returns the statistics since load of the scx_sfs that is running, whoever has started it.
///
/// # Errors
///
/// No loader answers.
pub fn stats() -> Result<Stats> {
    // A new connection each time: its first answer counts since load.
    let limit = u64::try_from(ANSWER_LIMIT.as_millis())?;
    StatsClient::new()
        .connect(Some(limit))
        .and_then(|mut client| client.request("stats", Vec::new()))
        .and_then(with_the_rest)
}

/// Reads statistics. Missing ones have their default values, so that cases run with an older
/// loader.
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

/// Returns and forgets the spans, in ns of [`now`], during which a process of the suite had a
/// scheduler enabled. Loading and unloading do not belong to them.
pub fn take_spans() -> Vec<Span> {
    let text = fs::read_to_string(spans()).unwrap_or_default();
    let _ = fs::remove_file(spans());
    let span = |line: &str| {
        let (from, to) = line.split_once(' ')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    text.lines().filter_map(span).collect()
}

/// Runs `command` to its end and returns its output.
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

/// Returns the state of sched_ext, as named by the kernel.
pub fn state() -> String {
    read(&format!("{SCHED_EXT}/state"))
}

/// Returns the name of the loaded scheduler, or an empty string.
pub fn ops() -> String {
    read(&format!("{SCHED_EXT}/root/ops"))
}

/// Returns the number of schedulers enabled since boot.
pub fn enable_seq() -> u64 {
    read(&format!("{SCHED_EXT}/enable_seq"))
        .parse()
        .unwrap_or(0)
}

/// Returns [`LOAD_LIMIT`] for this machine.
fn load_limit() -> Duration {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    LOAD_LIMIT * cpus.div_ceil(8) as u32
}

/// Waits until no scheduler is loaded.
///
/// # Errors
///
/// A scheduler stays loaded.
pub fn wait_until_disabled() -> Result<()> {
    let done = wait_until(load_limit(), || state() == "disabled");
    ensure!(done, "the scheduler {} stays: {}", ops(), state());
    Ok(())
}

/// Removes the history that loaders leave for the next one.
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
    fn statistics_missing_in_an_older_loader_are_zero() {
        let served = serde_json::json!({"arrivals": 7, "policy": "sfs"});
        let stats = with_the_rest(served.as_object().unwrap().clone()).unwrap();
        assert_eq!((stats.arrivals, stats.policy.as_str()), (7, "sfs"));
        assert_eq!((stats.ejections, stats.completions), (0, 0));
        let wrong = serde_json::json!({"arrivals": "many"});
        assert!(with_the_rest(wrong.as_object().unwrap().clone()).is_err());
    }
}
