//! Steps: checks of a release that take long, each with a log.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sfs_jobs::progress::Progress;
use sfs_jobs::signals::Interrupt;

use super::archive::Release;
use crate::checks::Checks;
use crate::log::Log;

/// The folder of the logs, from the top of the repository.
const LOGS: &str = "out/fresh";
/// So many lines of a failed step's log are shown.
const SHOWN: usize = 20;

/// Makes steps, and counts them.
pub struct Steps<'a> {
    top: PathBuf,
    /// Their count.
    pub checks: Checks<'a>,
    /// Reports slow work.
    pub progress: &'a Progress,
    /// Signals to end.
    pub interrupt: &'a Interrupt,
}

impl<'a> Steps<'a> {
    /// Steps with logs in the repository at `top`.
    ///
    /// # Errors
    ///
    /// The folder of the logs cannot be created.
    pub fn new(
        top: PathBuf,
        checks: Checks<'a>,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        fs::create_dir_all(top.join(LOGS)).with_context(|| format!("cannot create {LOGS}"))?;
        Ok(Self {
            top,
            checks,
            progress,
            interrupt,
        })
    }

    /// Makes a step. `action` writes the log, and returns the exit status. Returns the log's text
    /// if the step passed, `None` if it failed.
    ///
    /// # Errors
    ///
    /// Those of `action`, and of its log.
    pub fn step(
        &mut self,
        release: Release,
        name: &str,
        action: impl FnOnce(&mut Log) -> Result<i32>,
    ) -> Result<Option<String>> {
        let title = format!("Debian {}: {name}", release.number());
        let file = format!("{LOGS}/{}", file_of(release, name));
        self.progress.say(&title);
        let path = self.top.join(&file);
        let mut log = Log::create(path, self.interrupt, Some(self.progress))?;
        let status = action(&mut log)?;
        let (text, seconds) = (log.text()?, log.seconds());
        if status == 0 {
            self.checks.pass(&format!("{title} ({seconds} s)"))?;
            return Ok(Some(text));
        }
        let title = format!("{title} (exit status {status}, {seconds} s); the end of {file}:");
        let lines: Vec<_> = text.lines().collect();
        let end = lines.len().saturating_sub(SHOWN);
        self.checks.fail(&title, lines[end..].iter().copied())?;
        Ok(None)
    }
}

/// Returns the name of a step's log.
fn file_of(release: Release, name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name = name.chars().map(|c| if is_plain(&c) { c } else { '-' });
    format!("{}-{}.log", release.number(), name.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_jobs::failure::Failure;
    use std::process::Command;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Returns what was written, the exit status, and the folder of the logs.
    fn made(steps: impl FnOnce(&mut Steps)) -> (String, u8, tempfile::TempDir) {
        let top = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let (progress, interrupt) = (Progress::new("fresh"), Interrupt::default());
        let status = {
            let checks = Checks::new(&mut out);
            let mut all = Steps::new(top.path().into(), checks, &progress, &interrupt).unwrap();
            steps(&mut all);
            all.checks.conclude().unwrap()
        };
        (String::from_utf8(out).unwrap(), status, top)
    }

    #[test]
    fn a_step_that_passes_is_counted_and_its_log_is_kept() {
        let (out, status, top) = made(|steps| {
            let log = steps.step(Release::Bookworm, "root: make demo", |log| {
                log.run(sh("echo sudo x"))
            });
            assert_eq!(log.unwrap().as_deref(), Some("sudo x\n"));
        });
        let want = "ok      Debian 12: root: make demo (0 s)\n1 passed, 0 failed, 0 skipped\n";
        assert_eq!((out.as_str(), status), (want, 0));
        let log = fs::read_to_string(top.path().join("out/fresh/12-root--make-demo.log"));
        assert_eq!(log.unwrap(), "sudo x\n");
    }

    #[test]
    fn a_step_that_fails_shows_the_end_of_its_log() {
        let (out, status, _top) = made(|steps| {
            let log = steps.step(Release::Trixie, "one", |log| log.run(sh("seq 30; exit 7")));
            assert_eq!(log.unwrap(), None);
            steps.step(Release::Trixie, "two", |_| Ok(0)).unwrap();
        });
        let mut lines = out.lines();
        let first = "FAILED  Debian 13: one (exit status 7, 0 s); the end of out/fresh/13-one.log:";
        assert_eq!(lines.next(), Some(first));
        let shown: Vec<_> = lines.by_ref().take(SHOWN).map(str::trim_start).collect();
        let want: Vec<_> = (11..=30).map(|line| line.to_string()).collect();
        assert_eq!(shown, want);
        assert_eq!(lines.next(), Some("ok      Debian 13: two (0 s)"));
        assert_eq!(lines.next(), Some("1 passed, 1 failed, 0 skipped"));
        assert_eq!(status, 1);
    }

    #[test]
    fn a_step_that_cannot_be_made_ends_the_run() {
        made(|steps| {
            let log = steps.step(Release::Trixie, "one", |_| {
                Err(Failure::Interrupted(130).into())
            });
            assert_eq!(sfs_jobs::failure::status(&log.unwrap_err()), 130);
        });
    }
}
