//! The scheduler under which a guest measures.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use sfs_testbed::clock::wait_until;
use sfs_testbed::scheduler::state;

use crate::programs::spawn;

/// Time limit of loading and of unloading. With 100,000 tasks either takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Lines of the loader's log in an error.
const LINES: usize = 3;

/// A loaded scheduler.
pub struct Loader {
    child: Child,
    log: PathBuf,
}

impl Loader {
    /// Starts a loader, which writes to `log`, and waits until its scheduler is enabled.
    ///
    /// # Errors
    /// If it ends, or takes more than two minutes.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).context("cannot write the loader's log")?;
        let mut loader = Self {
            child: spawn(command.stdout(file.try_clone()?).stderr(file))?,
            log: log.into(),
        };
        let mut has_ended = false;
        let done = wait_until(LIMIT, || {
            has_ended = !loader.is_alive();
            has_ended || is_enabled()
        });
        if has_ended || !done {
            loader.kill();
            bail!("the scheduler does not load: {}", loader.last_lines(LINES));
        }
        Ok(loader)
    }

    /// Returns the loader's process id.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last lines of the loader's log, as one line.
    pub fn last_lines(&self, count: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("; ")
    }

    /// Ends the loader at once.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends the loader by SIGINT, and waits until no scheduler is loaded.
    ///
    /// # Errors
    /// If it has failed, or the scheduler stays.
    pub fn unload(mut self) -> Result<()> {
        // Its exit status tells more than this error.
        let _ = kill(self.pid(), Signal::SIGINT);
        let status = self.child.wait().context("cannot wait for the loader")?;
        let said = self.last_lines(LINES);
        ensure!(status.success(), "scx_sfs has ended: {said}");
        let is_unloaded = wait_until(LIMIT, || state() == "disabled");
        ensure!(is_unloaded, "scx_sfs does not unload: {said}");
        Ok(())
    }
}

/// Returns whether a scheduler is enabled.
pub fn is_enabled() -> bool {
    state() == "enabled"
}
