//! The guard of `faasbench trial`: the scheduler does not outlive a trial that has died.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use faas_trial::guard::{Guard, LATE};
use nix::sys::signal::{kill, Signal};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{now, sleep, wait_until, PATIENCE};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::state;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "guard_unloads_after_a_killed_trial",
        about: "a trial is killed while scx_sfs is loaded: its guard ends scx_sfs",
        run: guard_unloads_after_a_killed_trial,
    },
    Case {
        name: "guard_unloads_after_a_stopped_trial",
        about: "a trial no longer beats while scx_sfs is loaded: its guard ends both",
        run: guard_unloads_after_a_stopped_trial,
    },
    Case {
        name: "guard_leaves_a_finished_trial_alone",
        about: "a trial has ended as it should: its guard ends nobody, and nothing is left",
        run: guard_leaves_a_finished_trial_alone,
    },
];

/// The guard's deadline, which no case waits for.
const DEADLINE: Duration = Duration::from_secs(3600);

/// A trial that has loaded the scheduler, and sleeps.
fn trial(bench: &Bench) -> Result<Process> {
    let program = bench.program().to_owned();
    let trial = Process::spawn(move |_| {
        let begin = || -> Result<()> {
            let _guard = Guard::start(DEADLINE, false, false)?;
            let mut command = Command::new(&program);
            let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
            quiet.spawn().context("cannot start scx_sfs")?;
            loop {
                sleep(DEADLINE);
            }
        };
        begin().unwrap_or_else(|error| panic!("no trial: {error:#}"));
    })?;
    let is_loaded = wait_until(PATIENCE, || state() == "enabled");
    ensure!(is_loaded, "scx_sfs is not loaded: {}", state());
    Ok(trial)
}

/// Waits until the scheduler is gone, and prints how long that took.
fn await_unload(bench: &Bench, limit: Duration) -> Result<()> {
    let begun = now();
    let is_gone = wait_until(limit, || state() == "disabled");
    let took = now() - begun;
    bench.say(format_args!("unloaded after {} ms", took.as_millis()));
    ensure!(is_gone, "scx_sfs is still loaded: {}", state());
    Ok(())
}

fn guard_unloads_after_a_killed_trial(bench: &Bench) -> Result<()> {
    let trial = trial(bench)?;
    kill(trial.pid(), Signal::SIGKILL)?;
    await_unload(bench, PATIENCE)
}

fn guard_unloads_after_a_stopped_trial(bench: &Bench) -> Result<()> {
    let mut trial = trial(bench)?;
    kill(trial.pid(), Signal::SIGSTOP)?;
    await_unload(bench, LATE + PATIENCE)?;
    ensure!(
        wait_until(PATIENCE, || trial.has_ended()),
        "the trial itself was not ended"
    );
    Ok(())
}

fn guard_leaves_a_finished_trial_alone(_bench: &Bench) -> Result<()> {
    let mut trial = Process::spawn(|_| {
        let guard = Guard::start(DEADLINE, false, false);
        let guard = guard.unwrap_or_else(|error| panic!("no guard: {error:#}"));
        let folder = guard.folder().to_owned();
        drop(guard);
        assert!(!folder.exists(), "the folder is left");
        // Several looks of a guard that is still there.
        sleep(Duration::from_secs(2));
    })?;
    trial.wait()
}
