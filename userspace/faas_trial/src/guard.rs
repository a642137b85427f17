//! The guard: a process that ends a trial which has died, hangs, or takes too long.
//!
//! It is independent of the trial: a transient unit where systemd runs, else a process in a
//! session of its own. It runs in real time, so that no scheduler under test can starve it,
//! and the kernel spares it when memory is short. It looks several times a second whether the
//! trial lives, whether its heartbeat is recent, and whether the deadline has passed. If not
//! so, it ends every process of the trial, the scheduler among them: all of them have a
//! variable of this trial in their environment. A sched_ext scheduler is unloaded when its
//! process ends.

mod watch;

pub use watch::main;

use crate::machine::Machine;
use crate::refuse::{has_systemd, tied};
use crate::GUARD;
use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The variable in the environment of every process of a trial.
pub(crate) const VARIABLE: &str = "FAASBENCH_TRIAL";

/// Files in the folder that trial and guard share.
const HEARTBEAT: &str = "heartbeat";
const READY: &str = "ready";
const DONE: &str = "done";

/// The interval of heartbeats.
const BEAT: Duration = Duration::from_millis(500);

/// A heartbeat older than this is late.
pub const LATE: Duration = Duration::from_secs(10);

/// Time for the guard to say that it is there.
const START: Duration = Duration::from_secs(20);

/// What a guard is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The value of [`VARIABLE`].
    pub token: String,
    /// The process of the trial.
    pub pid: i32,
    /// When that began, in ticks since boot: another process may get its number.
    pub begun: u64,
    /// The folder that both share.
    pub folder: PathBuf,
    /// The trial must be over after this time, in seconds.
    pub deadline_s: u64,
    /// Heartbeats are late after this time, in milliseconds.
    pub late_ms: u64,
    /// Whether SysRq-S follows if a scheduler stays loaded.
    pub sysrq: bool,
}

/// A running guard, from the side of the trial, which must be dropped at its end.
#[derive(Debug)]
pub struct Guard {
    folder: TempDir,
    over: Arc<AtomicBool>,
    beats: Option<JoinHandle<()>>,
    /// How it runs, in words.
    pub how: &'static str,
}

impl Guard {
    /// Starts a guard over this process, and waits until it watches. From then on the
    /// environment of this process has the variable of the trial.
    ///
    /// # Errors
    /// If it cannot be started, or `is_remote` and it would end with the login.
    pub fn start(deadline: Duration, sysrq: bool, is_remote: bool) -> Result<Self> {
        let machine = Machine::this();
        let own = std::process::id() as i32;
        let stat = machine.stat(own).context("cannot read /proc: mount it")?;
        let folder = tempfile::Builder::new()
            .prefix("faasbench-trial-")
            .tempdir();
        let folder = folder.context("cannot make a folder for the heartbeat: free some space")?;
        let orders = Orders {
            token: format!("{own}-{}", stat.begun),
            pid: own,
            begun: stat.begun,
            folder: folder.path().to_path_buf(),
            deadline_s: deadline.as_secs(),
            late_ms: LATE.as_millis() as u64,
            sysrq,
        };
        beat(folder.path());
        let how = launch(&orders)?;
        let guard = await_ready(folder.path())?;
        let over = Arc::new(AtomicBool::new(false));
        let beats = Some(beats(folder.path().to_path_buf(), Arc::clone(&over)));
        let started = Self {
            folder,
            over,
            beats,
            how,
        };
        if let Some(why) = is_remote.then(|| tied(&machine, own, guard)).flatten() {
            bail!("remote access is not safeguarded: {why}");
        }
        std::env::set_var(VARIABLE, &orders.token);
        Ok(started)
    }
}

impl Guard {
    /// A folder for what the trial makes, which is removed with the guard, or by it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The guard removes the folder and ends when it sees this. If the folder vanished before
        // the guard has looked, that would be a trial without a heartbeat.
        let _ = std::fs::write(self.folder.path().join(DONE), "");
        let end = Instant::now() + START;
        while self.folder.path().exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.over.store(true, Relaxed);
        if let Some(beats) = self.beats.take() {
            let _ = beats.join();
        }
    }
}

/// Starts the guard, and returns how in words.
fn launch(orders: &Orders) -> Result<&'static str> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let text = serde_json::to_string(orders)?;
    if !has_systemd(Path::new("/")) {
        Command::new(program)
            .args([GUARD, &text])
            .env_remove(VARIABLE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("the guard cannot be started")?;
        return Ok("a process in a session of its own");
    }
    let unit = format!("--unit=faasbench-trial-{}", orders.pid);
    let output = Command::new("systemd-run")
        .args(["--quiet", "--collect", &unit, "--property=KillMode=process"])
        .args([
            "--description=ends a trial of faasbench that has died or hangs",
            "--",
        ])
        .arg(program)
        // systemd-run expands dollars itself; the orders have none.
        .args([GUARD, &text])
        .output()
        .context("systemd-run, which starts the guard, does not run: install systemd's tools")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "systemd did not start the guard as a unit: {}",
            said.lines().next().unwrap_or("it did not say why")
        );
    }
    Ok("a unit of systemd")
}

/// Waits for the guard, and returns its process.
fn await_ready(folder: &Path) -> Result<i32> {
    let end = Instant::now() + START;
    while Instant::now() < end {
        let text = std::fs::read_to_string(folder.join(READY)).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            return Ok(pid);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!(
        "the guard did not begin to watch within {} s: try again",
        START.as_secs()
    )
}

/// Beats until the trial is over.
fn beats(folder: PathBuf, over: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !over.load(Relaxed) {
            beat(&folder);
            std::thread::sleep(BEAT);
        }
    })
}

fn beat(folder: &Path) {
    if folder.join(DONE).exists() {
        return;
    }
    let now = faas_replay::clock::monotonic_ns().to_string();
    let beside = folder.join("beat");
    // Whole at any moment. If it fails, the guard finds the heartbeat late, which is right.
    if std::fs::write(&beside, now).is_ok() {
        let _ = std::fs::rename(&beside, folder.join(HEARTBEAT));
    }
}
