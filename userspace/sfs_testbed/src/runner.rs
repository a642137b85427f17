//! Runs one case in a process of its own, so that a panic, a hang or a leftover child of a case
//! does not affect the next one.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{killpg, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{fork, setpgid, ForkResult, Pid};

use crate::case::{Bench, Case};
use crate::perturbation::Perturbation;
use crate::scheduler::{forget_history, wait_until_disabled};
use crate::skip::Skip;

/// Time limit of a case.
const LIMIT: Duration = Duration::from_secs(120);

const PASSED: i32 = 0;
const FAILED: i32 = 1;
const SKIPPED: i32 = 2;

/// The result of a case.
pub enum Verdict {
    /// The behaviour is as expected.
    Passed,
    /// The notes have the reason.
    Failed,
    /// The last note is the reason.
    Skipped,
}

/// Runs `case` with the loader `scx_sfs` on `cpus` CPUs; returns the result and the notes.
///
/// # Errors
///
/// The case could not be run at all.
pub fn run(case: &Case, scx_sfs: &Path, cpus: usize) -> Result<(Verdict, Vec<String>)> {
    let path = std::env::temp_dir().join("sfs_behaviour.notes");
    fs::write(&path, "").context("cannot write notes")?;
    give_memory_back();
    // SAFETY: this process has a single thread.
    let verdict = match unsafe { fork() }.context("cannot fork")? {
        ForkResult::Child => run_child(case, scx_sfs, cpus, &path),
        ForkResult::Parent { child } => verdict_of(child, &path)?,
    };
    let notes = fs::read_to_string(&path).context("cannot read notes")?;
    let notes = notes.lines().map(str::to_owned).collect();
    Ok(judge_skip(case, verdict, notes))
}

/// Returns free memory to the kernel. A case's processes are copies of this one, and each fork
/// copies its page tables: after a million scheduling events of an earlier case, a fork took
/// 15 ms longer, during which its CPU did nothing for the case.
fn give_memory_back() {
    // SAFETY: frees unused memory; the argument is how much to keep.
    unsafe { libc::malloc_trim(0) };
}

/// With `CI` set, fails a skipped case that is not on the list `tests/skips`.
fn judge_skip(case: &Case, verdict: Verdict, mut notes: Vec<String>) -> (Verdict, Vec<String>) {
    if !matches!(verdict, Verdict::Skipped) {
        return (verdict, notes);
    }
    let why = notes.last().map_or("", String::as_str);
    match sfs_skip::check(&format!("behaviour::{}", case.name), why) {
        Ok(()) => (Verdict::Skipped, notes),
        Err(sentence) => {
            notes.push(sentence);
            (Verdict::Failed, notes)
        }
    }
}

fn open_notes(path: &PathBuf) -> Option<File> {
    OpenOptions::new().append(true).open(path).ok()
}

fn add_note(path: &PathBuf, note: &str) {
    if let Some(file) = open_notes(path) {
        Bench::new(Path::new(""), 0, file).say(note);
    }
}

fn run_child(case: &Case, scx_sfs: &Path, cpus: usize, path: &PathBuf) -> ! {
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let panic_path = path.clone();
    // Children that the case forks inherit this.
    std::panic::set_hook(Box::new(move |info| {
        add_note(&panic_path, &info.to_string())
    }));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let notes = open_notes(path).context("cannot write notes")?;
        // Processes of other cases are no functions in this one.
        forget_history()?;
        let bench = Bench::new(scx_sfs, cpus, notes);
        if let Some(done) = Perturbation::of_environment()?.displace(case.name, cpus)? {
            bench.say(done);
        }
        (case.run)(&bench)
    }));
    std::process::exit(match result {
        Ok(Ok(())) => PASSED,
        Ok(Err(error)) => {
            add_note(path, &format!("{error:#}"));
            if error.is::<Skip>() {
                SKIPPED
            } else {
                FAILED
            }
        }
        Err(_) => FAILED,
    })
}

/// Waits for the case, kills the processes that it left, and waits until the machine is on its
/// default scheduler.
fn verdict_of(child: Pid, path: &PathBuf) -> Result<Verdict> {
    let in_time = wait_for_end(child)?;
    // Until the case is reaped, no other process group can have its number.
    let _ = killpg(child, Signal::SIGKILL);
    let status = waitpid(child, None).context("the case is gone")?;
    reap_orphans();
    let clean = wait_until_disabled();

    let mut verdict = match status {
        WaitStatus::Exited(_, PASSED) => Verdict::Passed,
        WaitStatus::Exited(_, SKIPPED) => Verdict::Skipped,
        _ => Verdict::Failed,
    };
    if !in_time {
        add_note(path, &format!("ended after {LIMIT:?}"));
        verdict = Verdict::Failed;
    }
    if let Err(error) = clean {
        add_note(path, &format!("after the case: {error:#}"));
        verdict = Verdict::Failed;
    }
    Ok(verdict)
}

/// Returns whether `child` ends within the limit. Does not reap it.
fn wait_for_end(child: Pid) -> Result<bool> {
    // SAFETY: takes plain numbers; nothing else owns the returned descriptor.
    let fd = unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0);
        OwnedFd::from_raw_fd(i32::try_from(fd)?)
    };
    let timeout = PollTimeout::try_from(LIMIT)?;
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut fds, timeout).context("cannot wait for the case")? > 0)
}

/// Reaps the orphans of the case's processes: this process is their subreaper.
fn reap_orphans() {
    while waitpid(None::<Pid>, None).is_ok() {}
}
