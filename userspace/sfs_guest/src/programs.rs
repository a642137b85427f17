//! Programs that a guest runs.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::{kill, killpg, Signal};
use nix::unistd::Pid;
use sfs_testbed::clock::{ms, sleep, wait_until};

/// Where the output of [`run`] goes: a file never makes a program wait.
const STDOUT: &str = "/tmp/stdout";
const STDERR: &str = "/tmp/stderr";

/// Time limit of [`await_success`].
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that has ended.
pub struct Ended {
    /// The exit status; 128 more than the signal that ended it.
    pub status: i32,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

impl Ended {
    /// Returns the last line of the errors, or else of the output; 80 characters at most.
    pub fn last_line(&self) -> String {
        let mut lines = self.output.lines().chain(self.errors.lines());
        let last = lines.next_back().unwrap_or_default();
        last.chars().take(80).collect()
    }
}

/// Starts a program without input.
///
/// # Errors
/// If it cannot be started.
pub fn spawn(command: &mut Command) -> Result<Child> {
    let child = command.stdin(Stdio::null()).spawn();
    child.with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Runs a program to its end. After `limit` it is killed, and its process group with it.
///
/// # Errors
/// If it cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended> {
    let create = |path| File::create(path).with_context(|| format!("cannot write {path}"));
    command.stdout(create(STDOUT)?).stderr(create(STDERR)?);
    let child = spawn(command.process_group(0))?;
    let status = wait_within(child, limit)?;
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ended {
        status: number(status),
        output: read(STDOUT)?,
        errors: read(STDERR)?,
    })
}

fn number(status: ExitStatus) -> i32 {
    let signal = status.signal().unwrap_or_default();
    status.code().unwrap_or(128 + signal)
}

/// Waits in the kernel: polling would take CPU time of what is measured.
fn wait_within(mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let group = Pid::from_raw(child.id().cast_signed());
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(child.wait()));
        let status = ended.recv_timeout(limit).or_else(|_| {
            // It may have ended meanwhile.
            let _ = killpg(group, Signal::SIGKILL);
            ended.recv()
        });
        status.context("nobody waits")?.context("cannot wait")
    })
}

/// Runs a program silently, and returns whether it succeeds.
pub fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Runs a program until it succeeds, for at most half a minute; returns whether it did.
pub fn await_success(mut command: impl FnMut() -> Command) -> bool {
    wait_until(PATIENCE, || {
        let done = succeeds(&mut command());
        if !done {
            sleep(ms(100));
        }
        done
    })
}

/// Returns the processes of this name.
pub fn processes(name: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_named = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    pids.filter(is_named).map(Pid::from_raw).collect()
}

/// Kills the processes of this name again and again, until none is left: one just forked is
/// not in the list yet.
///
/// # Errors
/// If some are left after a minute.
pub fn kill_all(name: &str) -> Result<()> {
    let gone = wait_until(Duration::from_secs(60), || {
        let left = processes(name);
        for pid in &left {
            // It may have ended meanwhile.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        left.is_empty()
    });
    ensure!(gone, "{name} does not end");
    Ok(())
}

/// Returns the number of CPUs that are online.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Writes a file of the kernel.
///
/// # Errors
/// If the kernel refuses.
pub fn set(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("cannot write {value} to {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let child = spawn(Command::new("sleep").arg("60").process_group(0)).unwrap();
        assert_eq!(number(wait_within(child, ms(50)).unwrap()), 137);
        let child = spawn(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        let status = wait_within(child, Duration::from_secs(60)).unwrap();
        assert_eq!(number(status), 3);
    }

    #[test]
    fn the_last_line_is_that_of_the_errors() {
        let ended = |output: &str, errors: &str| Ended {
            status: 1,
            output: output.into(),
            errors: errors.into(),
        };
        assert_eq!(ended("one\n", "two\nthree\n").last_line(), "three");
        assert_eq!(ended("one\n", "").last_line(), "one");
        assert_eq!(ended("", &"x".repeat(90)).last_line(), "x".repeat(80));
    }

    #[test]
    fn processes_are_found_by_name() {
        let mut child = spawn(Command::new("sleep").arg("60")).unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        // It has its name a moment after exec.
        let is_named = || processes("sleep").contains(&pid);
        assert!(wait_until(PATIENCE, is_named));
        assert!(!processes("slee").contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
