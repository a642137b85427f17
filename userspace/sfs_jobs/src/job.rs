//! Other programs, run so that they can be ended.

use crate::signals::Interrupt;
use crate::tree::Tree;
use anyhow::{Context, Result};
use nix::sys::signal::{killpg, Signal};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Polling intervals: of a program that has just started, and of one that runs for long.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LATER_LOOK: Duration = Duration::from_millis(100);

/// A program that runs in a process group of its own. Ctrl-C on the terminal therefore
/// reaches this process alone, which then decides what becomes of the others. Dropped, it
/// ends.
#[derive(Debug)]
pub struct Job {
    child: Child,
    status: Option<i32>,
}

impl Job {
    /// Starts it, without an input.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| cannot_run(command))?;
        Ok(Self {
            child,
            status: None,
        })
    }

    /// Its exit status if it has ended; after a signal 128 and the signal's number, as in a
    /// shell.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn poll(&mut self) -> Result<Option<i32>> {
        if self.status.is_none() {
            let ended = self.child.try_wait().context("cannot wait for a program")?;
            self.status = ended.map(in_a_shell);
        }
        Ok(self.status)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// If a signal asks this process to end; the program then still runs.
    pub fn wait(&mut self, interrupt: &Interrupt) -> Result<i32> {
        self.wait_and(interrupt, Duration::MAX, || {})
    }

    /// As [`wait`](Self::wait), and calls `now_and_then` each time that so much time has
    /// passed.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_and(
        &mut self,
        interrupt: &Interrupt,
        every: Duration,
        now_and_then: impl Fn(),
    ) -> Result<i32> {
        let (mut pause, mut last) = (FIRST_LOOK, Instant::now());
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            interrupt.check()?;
            if last.elapsed() >= every {
                now_and_then();
                last = Instant::now();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LATER_LOOK);
        }
    }

    /// Asks the program, and the programs that it has started, to end.
    pub fn ask_to_end(&self) {
        if self.status.is_none() {
            // It may have ended by itself; until we wait for it, its number is taken.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.ask_to_end();
        if self.status.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// A call of `program`, with the repository as its working folder.
pub fn call(tree: &Tree, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(tree.at(program));
    command.current_dir(tree.root());
    command
}

/// As [`call`], for a program that gets SIGTERM when the thread that starts it ends,
/// however that happens.
pub fn call_tied(tree: &Tree, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM"])
        .arg(program)
        .current_dir(tree.root());
    command
}

/// Runs a program to its end, in our process group. Returns the exit status as in a shell.
///
/// # Errors
/// If it cannot be started.
pub fn run(command: &mut Command) -> Result<i32> {
    let status = command.stdin(Stdio::null()).status();
    Ok(in_a_shell(status.with_context(|| cannot_run(command))?))
}

fn cannot_run(command: &Command) -> String {
    format!("cannot run {}", Path::new(command.get_program()).display())
}

/// An exit status as a shell has it.
fn in_a_shell(status: ExitStatus) -> i32 {
    let signal = status.signal().map_or(0, |signal| 128 + signal);
    status.code().unwrap_or(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Job {
        Job::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn statuses_are_those_of_a_shell() {
        let interrupt = Interrupt::default();
        assert_eq!(sh("exit 3").wait(&interrupt).unwrap(), 3);
        assert_eq!(sh("kill -KILL $$").wait(&interrupt).unwrap(), 137);
    }

    #[test]
    fn the_programs_of_a_job_end_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!(
            "sleep 60 & echo $! >{0}.new; mv {0}.new {0}; wait",
            file.display()
        );
        let job = sh(&script);
        let pid = loop {
            match std::fs::read_to_string(&file) {
                Ok(pid) => break pid,
                Err(_) => std::thread::sleep(FIRST_LOOK),
            }
        };
        drop(job);
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            // An ended process stays a zombie until its parent waits for it.
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        let ended = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            gone()
        });
        assert!(ended, "process {pid} is still there");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let said = Job::start(&mut Command::new("/none"))
            .unwrap_err()
            .to_string();
        assert_eq!(said, "cannot run /none");
    }
}
