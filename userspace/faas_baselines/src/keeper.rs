//! Keeps settings of the kernel changed for as long as the benchmark runs.
//!
//! A process of its own writes them, and puts back what was there when the pipe from the
//! benchmark closes: at its end, and after a crash or a kill that nobody can catch. It is in a
//! session of its own, so that Ctrl-C does not reach it.

use crate::tuning::{Changed, Tuning, FOLDER};
use crate::KEEP;
use anyhow::{bail, Context, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// The answer of the process once the settings are in force.
const IN_FORCE: &str = "in force\n";

/// Settings that are in force until this is dropped or [`Kept::end`]ed.
#[derive(Debug)]
pub struct Kept {
    process: Child,
    /// The process ends when it is closed.
    stdin: Option<ChildStdin>,
}

impl Kept {
    /// Puts `tuning` into force.
    ///
    /// # Errors
    /// If the kernel has no such setting or refuses a value; then nothing has changed.
    pub fn begin(tuning: &Tuning) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut process = Command::new(program)
            .args([KEEP, &serde_json::to_string(tuning)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the process that keeps settings")?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().context("no standard output")?;
        let mut kept = Self { process, stdin };
        let mut said = String::new();
        BufReader::new(stdout)
            .read_line(&mut said)
            .context("cannot hear of the settings")?;
        if said != IN_FORCE {
            kept.close()?;
            bail!("{}", said.trim_end());
        }
        Ok(kept)
    }

    /// Puts back what was there.
    ///
    /// # Errors
    /// If that failed.
    pub fn end(mut self) -> Result<()> {
        match self.close()? {
            true => Ok(()),
            false => bail!("the kernel's settings in {FOLDER} could not be put back"),
        }
    }

    /// Waits for the process, and returns whether it succeeded.
    fn close(&mut self) -> Result<bool> {
        drop(self.stdin.take());
        let status = self
            .process
            .wait()
            .context("cannot wait for the settings")?;
        Ok(status.success())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // After an error that is told already.
        let _ = self.close();
    }
}

/// Runs the process with `plan`, a [`Tuning`] in JSON; returns its exit code.
pub fn main(plan: &str) -> ExitCode {
    let _ = nix::unistd::setsid();
    let changed = serde_json::from_str(plan)
        .context("no settings to keep")
        .and_then(|tuning| Changed::apply(Path::new(FOLDER), &tuning));
    let mut stdout = std::io::stdout();
    match changed {
        Ok(changed) => {
            let told = stdout
                .write_all(IN_FORCE.as_bytes())
                .and_then(|()| stdout.flush());
            if told.is_ok() {
                // Nobody writes: this returns when the other end is closed.
                let _ = std::io::stdin().read_to_end(&mut Vec::new());
            }
            match changed.restore() {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            let _ = writeln!(stdout, "{error:#}");
            ExitCode::FAILURE
        }
    }
}
