//! Sets the machine up for a scheduler: settings of the kernel, a daemon, or a
//! sched_ext scheduler that is started before the replay and stopped after it.

use crate::scheduler::{is_ops, kernel_release, sysfs, version_in};
use anyhow::{Context, Result};
use faas_baselines::keeper::Kept;
use faas_baselines::steer::{Plan, Steered};
use faas_baselines::tuning::Tuning;
use faas_data::summary::machine::Daemon;
use faas_data::summary::Status;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum time from a scheduler's start until it is enabled. Loading takes
/// some schedulers 40 s on emulated CPUs.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time for a scheduler to exit after SIGINT.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The environment variable that makes scx_sfs print S and the mode, if it is `true`
/// ([`faas_data::summary::slice`]). Other schedulers ignore it.
const ASK: &str = "SCX_SFS_LOG_SLICE";

const POLL: Duration = Duration::from_millis(50);

/// A scheduler in charge of the machine. What it has changed is put back when it is dropped.
#[derive(Debug)]
pub struct Session {
    process: Option<Child>,
    enabled: Option<String>,
    steered: Option<Steered>,
    kept: Option<Kept>,
    /// Its version, of the program or of the kernel.
    pub version: String,
    /// The errors so far.
    pub trouble: Option<(Status, String)>,
    /// What the daemon has done, once it has ended.
    pub daemon: Option<Daemon>,
}

impl Default for Session {
    /// The kernel's own scheduling.
    fn default() -> Self {
        Self {
            process: None,
            enabled: None,
            steered: None,
            kept: None,
            version: kernel_release(),
            trouble: None,
            daemon: None,
        }
    }
}

impl Session {
    /// Puts settings of the kernel into force.
    pub(crate) fn tune(&mut self, tuning: &Tuning) {
        if tuning.is_empty() {
            return;
        }
        match Kept::begin(tuning) {
            Ok(kept) => self.kept = Some(kept),
            Err(error) => self.trouble = Some((Status::NotLoaded, format!("{error:#}"))),
        }
    }

    /// Starts the daemon of `plan`.
    pub(crate) fn steer(&mut self, plan: &Plan, log: Option<File>) {
        match Steered::begin(plan, log) {
            Ok(steered) => self.steered = Some(steered),
            Err(error) => self.trouble = Some((Status::NotLoaded, format!("{error:#}"))),
        }
    }

    /// Starts a sched_ext scheduler, and waits until it is enabled.
    pub(crate) fn load(
        &mut self,
        program: &Path,
        ops: &str,
        args: &[String],
        log: Option<File>,
    ) -> Result<()> {
        let output = |log: &Option<File>| match log {
            Some(file) => file.try_clone().map(Stdio::from),
            None => Ok(Stdio::null()),
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .env(ASK, "true")
            .stdin(Stdio::null())
            .stdout(output(&log).context("cannot keep the scheduler's output")?)
            .stderr(output(&log).context("cannot keep the scheduler's output")?);
        self.version = "unknown".to_string();
        match command.spawn() {
            Ok(process) => self.await_load(process, ops),
            Err(error) => {
                self.trouble = Some((Status::NotLoaded, format!("cannot start it: {error}")));
                Ok(())
            }
        }
    }

    fn await_load(&mut self, mut process: Child, ops: &str) -> Result<()> {
        let deadline = Instant::now() + LOAD_TIMEOUT;
        let problem = loop {
            if let Some(status) = process
                .try_wait()
                .context("cannot wait for the scheduler")?
            {
                break format!("it ended before it was enabled: {status}");
            }
            if sysfs("state").as_deref() == Some("enabled") {
                let name = sysfs("root/ops").unwrap_or_default();
                if is_ops(&name, ops) {
                    self.version = version_in(&name, ops).unwrap_or_else(|| "unknown".into());
                    self.enabled = sysfs("enable_seq");
                    self.process = Some(process);
                    return Ok(());
                }
                stop(&mut process);
                break format!("the kernel calls it `{name}`, want `{ops}` or `{ops}_...`");
            }
            if Instant::now() > deadline {
                stop(&mut process);
                break format!("it was not enabled within {} s", LOAD_TIMEOUT.as_secs());
            }
            std::thread::sleep(POLL);
        };
        self.trouble = Some((Status::NotLoaded, problem));
        Ok(())
    }

    /// Whether it is loaded, so that a replay can be measured.
    pub fn is_loaded(&self) -> bool {
        !matches!(self.trouble, Some((Status::NotLoaded, _)))
    }

    /// Checks, right after the replay, whether it was loaded throughout; then
    /// stops it, and puts back the settings of the kernel.
    pub fn finish(&mut self) {
        self.unload();
        if let Some(steered) = self.steered.take() {
            self.dismiss(steered);
        }
        if let Some(Err(error)) = self.kept.take().map(Kept::end) {
            let trouble = (Status::BadExit, format!("{error:#}"));
            self.trouble.get_or_insert(trouble);
        }
    }

    /// The daemon has done its work.
    fn dismiss(&mut self, mut steered: Steered) {
        let ended = steered.ended();
        match steered.end() {
            Ok(daemon) => {
                if daemon.lost > 0 {
                    let how = format!(
                        "the kernel dropped {} times reports of new processes, which the daemon \
                         has not seen",
                        daemon.lost
                    );
                    self.trouble = Some((Status::BadExit, how));
                }
                self.daemon = Some(daemon);
            }
            Err(error) if ended.is_some() => {
                self.trouble = Some((Status::Ejected, format!("{error:#}")));
            }
            Err(error) => self.trouble = Some((Status::BadExit, format!("{error:#}"))),
        }
    }

    fn unload(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = process.try_wait().ok().flatten();
        if let Some(status) = ended {
            let how = format!("it ended during the replay: {status}");
            self.trouble = Some((Status::Ejected, how));
            return;
        }
        if sysfs("state").as_deref() != Some("enabled") {
            let how = "the kernel disabled it during the replay".to_string();
            self.trouble = Some((Status::Ejected, how));
        } else if sysfs("enable_seq") != self.enabled {
            let how = "it was loaded again during the replay".to_string();
            self.trouble = Some((Status::Reloaded, how));
        }
        let problem = match stop(&mut process) {
            Some(status) if status.success() => return,
            Some(status) => format!("after SIGINT: {status}"),
            None => format!(
                "it did not exit within {} s of SIGINT",
                EXIT_TIMEOUT.as_secs()
            ),
        };
        self.trouble.get_or_insert((Status::BadExit, problem));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            stop(process);
        }
    }
}

/// Ends `process` with SIGINT and waits; `None` if it had to be killed.
fn stop(process: &mut Child) -> Option<ExitStatus> {
    let _ = kill(Pid::from_raw(process.id() as i32), Signal::SIGINT);
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = process.try_wait() {
            return Some(status);
        }
        std::thread::sleep(POLL);
    }
    let _ = process.kill();
    let _ = process.wait();
    None
}
