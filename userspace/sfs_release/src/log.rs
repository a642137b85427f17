//! The output of commands that belong to one check, in a file.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sfs_jobs::job::Job;
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;

/// How often a command that still runs is reported.
const PROGRESS: Duration = Duration::from_secs(30);
/// The longest part of a line that is reported, in characters.
const WIDTH: usize = 100;

/// A file with the output of commands.
pub struct Log<'a> {
    file: File,
    path: PathBuf,
    since: Instant,
    interrupt: &'a Interrupt,
    progress: Option<&'a Progress>,
}

impl<'a> Log<'a> {
    /// Creates the file at `path`, empty. With `progress`, commands that run for long are
    /// reported there.
    ///
    /// # Errors
    ///
    /// It cannot be created.
    pub fn create(
        path: PathBuf,
        interrupt: &'a Interrupt,
        progress: Option<&'a Progress>,
    ) -> Result<Self> {
        let file =
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self {
            file,
            path,
            since: Instant::now(),
            interrupt,
            progress,
        })
    }

    /// Returns whole seconds since the log was created.
    pub fn seconds(&self) -> u64 {
        self.since.elapsed().as_secs()
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn note(&mut self, text: &str) -> Result<()> {
        writeln!(self.file, "{text}").with_context(|| self.cannot("write"))
    }

    /// Runs a command without input, to its end. Its output is added to the log. Returns its exit
    /// status, as in a shell.
    ///
    /// # Errors
    ///
    /// It cannot be started, or a signal asks this program to end; the command is ended then.
    pub fn run(&mut self, mut command: Command) -> Result<i32> {
        let output = || self.file.try_clone().with_context(|| self.cannot("write"));
        command.stdout(output()?).stderr(output()?);
        let mut job = Job::start(&mut command)?;
        job.wait_and(self.interrupt, PROGRESS, || self.report())
    }

    /// Runs commands until one of them fails. Returns the exit status of the last that ran.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_all(&mut self, commands: impl IntoIterator<Item = Command>) -> Result<i32> {
        for command in commands {
            let status = self.run(command)?;
            if status != 0 {
                return Ok(status);
            }
        }
        Ok(0)
    }

    /// Returns the log's text.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn text(&self) -> Result<String> {
        let bytes = fs::read(&self.path).with_context(|| self.cannot("read"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn report(&self) {
        if let Some(progress) = self.progress {
            let text = self.text().unwrap_or_default();
            progress.say(&format!("  {} s: {}", self.seconds(), last_line(&text)));
        }
    }

    fn cannot(&self, what: &str) -> String {
        format!("cannot {what} {}", self.path.display())
    }
}

/// Returns the beginning of the last line, without carriage returns.
fn last_line(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    last.chars().filter(|c| *c != '\r').take(WIDTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_log_has_both_outputs_and_the_notes_in_order() {
        let folder = tempdir().unwrap();
        let interrupt = Interrupt::default();
        let mut log = Log::create(folder.path().join("log"), &interrupt, None).unwrap();
        let status = log.run(sh("echo out; echo err >&2; exit 3")).unwrap();
        log.note("a note").unwrap();
        assert_eq!(log.run(sh("cat; echo again")).unwrap(), 0);
        assert_eq!(status, 3);
        assert_eq!(log.text().unwrap(), "out\nerr\na note\nagain\n");
        log.run(Command::new("/none")).unwrap_err();
    }

    #[test]
    fn no_command_runs_after_one_that_failed() {
        let folder = tempdir().unwrap();
        let interrupt = Interrupt::default();
        let mut log = Log::create(folder.path().join("log"), &interrupt, None).unwrap();
        let commands = [sh("echo 1"), sh("echo 2; exit 4"), sh("echo 3")];
        assert_eq!(log.run_all(commands).unwrap(), 4);
        assert_eq!(log.text().unwrap(), "1\n2\n");
        assert_eq!(log.run_all([sh("true"), sh("echo 4")]).unwrap(), 0);
        assert_eq!(log.text().unwrap(), "1\n2\n4\n");
    }

    #[test]
    fn reports_show_the_end_of_a_log_on_one_line() {
        assert_eq!(last_line(""), "");
        assert_eq!(last_line("a\n 10 %\r 20 %\n"), " 10 % 20 %");
        assert_eq!(last_line(&"ä".repeat(2 * WIDTH)).chars().count(), WIDTH);
    }
}
