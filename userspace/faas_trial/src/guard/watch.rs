//! The guard's own process.

use super::{Orders, DONE, HEARTBEAT, READY, VARIABLE};
use crate::machine::Machine;
use anyhow::{Context, Result};
use faas_data::output::note;
use faas_replay::clock::monotonic_ns;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The interval of looks.
const LOOK: Duration = Duration::from_millis(250);

/// Time for processes to end after SIGTERM, and after SIGKILL.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the guard with these orders, as JSON; returns its exit code.
pub fn main(orders: &str) -> ExitCode {
    let outcome = serde_json::from_str(orders)
        .context("no orders for the guard")
        .and_then(|orders| watch(&orders, &Machine::this()));
    match outcome {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(told)) => {
            note(&told);
            ExitCode::FAILURE
        }
        Err(error) => {
            note(&format!("faasbench trial: guard: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Watches until the trial is over. Returns what was wrong, after it was cleaned up.
fn watch(orders: &Orders, machine: &Machine) -> Result<Option<String>> {
    let own = std::process::id() as i32;
    let _ = nix::unistd::setsid();
    // A guard that has less than that is still one.
    let _ = faas_replay::realtime::become_dispatcher();
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let deadline = Instant::now() + Duration::from_secs(orders.deadline_s);
    let ready = orders.folder.join(READY);
    std::fs::write(&ready, own.to_string()).context("cannot say that it watches")?;
    loop {
        if let Some(told) = look(orders, machine, own, Instant::now() > deadline) {
            let _ = std::fs::remove_dir_all(&orders.folder);
            return Ok(told);
        }
        std::thread::sleep(LOOK);
    }
}

/// Looks once. `None`: go on; else the guard's work is done, and what was wrong, if anything.
fn look(orders: &Orders, machine: &Machine, own: i32, is_late: bool) -> Option<Option<String>> {
    if orders.folder.join(DONE).exists() {
        return Some(None);
    }
    let wrong = wrong(orders, machine, is_late)?;
    let ended = clean_up(orders, machine, own);
    Some(Some(format!("faasbench trial: guard: {wrong}: {ended}")))
}

/// What is wrong with the trial.
fn wrong(orders: &Orders, machine: &Machine, is_late: bool) -> Option<&'static str> {
    let trial = machine.stat(orders.pid);
    let lives = trial.is_some_and(|stat| stat.begun == orders.begun && !"ZX".contains(stat.state));
    if !lives {
        return Some("the trial has died");
    }
    if is_late {
        return Some("the deadline has passed");
    }
    let text = std::fs::read_to_string(orders.folder.join(HEARTBEAT)).unwrap_or_default();
    let is_recent = text.parse().is_ok_and(|beat_ns: u64| {
        monotonic_ns().saturating_sub(beat_ns) / 1_000_000 <= orders.late_ms
    });
    (!is_recent).then_some("the heartbeat is late")
}

/// Ends all processes of the trial; returns what was done.
fn clean_up(orders: &Orders, machine: &Machine, own: i32) -> String {
    let asked = end_all(orders, machine, own, Signal::SIGTERM);
    let killed = match asked.1 {
        true => 0,
        false => end_all(orders, machine, own, Signal::SIGKILL).0,
    };
    let mut told = format!(
        "{} processes were told to end, {killed} were killed",
        asked.0
    );
    if machine.loaded().is_some() {
        match orders.sysrq {
            true if std::fs::write("/proc/sysrq-trigger", "S").is_ok() => {
                told += ", and SysRq-S unloaded the scheduler";
            }
            _ => told += ", and a sched_ext scheduler is still loaded",
        }
    }
    told
}

/// Sends `signal` to all processes of the trial until none is left, for [`ENDING`] at most.
/// Returns to how many, and whether none is left.
fn end_all(orders: &Orders, machine: &Machine, own: i32, signal: Signal) -> (usize, bool) {
    let end = Instant::now() + ENDING;
    let mut told = std::collections::BTreeSet::new();
    loop {
        let is_over = Instant::now() > end;
        let left = left(orders, machine, own);
        if left.is_empty() {
            return (told.len(), true);
        }
        for pid in left {
            // Once, and again what was forked meanwhile.
            if told.insert(pid) {
                let _ = kill(Pid::from_raw(pid), signal);
                // A stopped one cannot end before it goes on.
                let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        }
        // Each got the signal, however long it takes to find them on a machine that crawls.
        if is_over {
            return (told.len(), false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The processes of the trial that are left.
fn left(orders: &Orders, machine: &Machine, own: i32) -> Vec<i32> {
    let mut all = machine.processes();
    all.retain(|pid| {
        let is_trial = || {
            let stat = machine.stat(*pid);
            *pid == orders.pid && stat.is_some_and(|stat| stat.begun == orders.begun)
        };
        let is_ours = || machine.has_variable(*pid, VARIABLE, &orders.token) || is_trial();
        let lives = || {
            machine
                .stat(*pid)
                .is_some_and(|stat| !"ZX".contains(stat.state))
        };
        *pid != own && is_ours() && lives()
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    /// A process that stands for the trial, one of its children that ignores SIGTERM, and the
    /// orders to watch them.
    struct Scene {
        trial: Child,
        scheduler: Child,
        orders: Orders,
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new(token: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let trial = Command::new("sleep").arg("1000").spawn().unwrap();
            let scheduler = Command::new("sh")
                .args(["-c", "trap '' TERM; while :; do sleep 0.1; done"])
                .env(VARIABLE, token)
                .spawn()
                .unwrap();
            let pid = trial.id() as i32;
            let shared = folder.path().join("shared");
            std::fs::create_dir(&shared).unwrap();
            let orders = Orders {
                token: token.to_string(),
                pid,
                begun: Machine::this().stat(pid).unwrap().begun,
                folder: shared,
                deadline_s: 3600,
                late_ms: 3_600_000,
                sysrq: false,
            };
            super::super::beat(&orders.folder);
            Self {
                trial,
                scheduler,
                orders,
                folder,
            }
        }

        fn watch(&self) -> Option<String> {
            // Without real time and a session of its own.
            let orders = self.orders.clone();
            let (machine, own) = (Machine::this(), std::process::id() as i32);
            loop {
                let is_late = orders.deadline_s == 0;
                if let Some(told) = look(&orders, &machine, own, is_late) {
                    return told;
                }
                std::thread::sleep(LOOK);
            }
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            for process in [&mut self.trial, &mut self.scheduler] {
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }

    #[test]
    fn a_trial_that_was_killed_takes_its_scheduler_along() {
        let mut scene = Scene::new("killed");
        scene.trial.kill().unwrap();
        let told = scene.watch().unwrap();
        assert!(told.contains("guard: the trial has died: "), "{told}");
        // The loop of the shell may be in any of its sleeps.
        let status = scene.scheduler.wait().unwrap();
        assert_eq!(status.signal(), Some(9));
        assert!(scene.folder.path().exists());
    }

    #[test]
    fn a_late_heartbeat_and_a_passed_deadline_end_the_trial_too() {
        for (late_ms, deadline_s, want) in [(0, 3600, "heartbeat"), (3_600_000, 0, "deadline")] {
            let mut scene = Scene::new(want);
            (scene.orders.late_ms, scene.orders.deadline_s) = (late_ms, deadline_s);
            std::thread::sleep(Duration::from_millis(5));
            let told = scene.watch().unwrap();
            assert!(told.contains(want), "{told}");
            assert_eq!(scene.trial.wait().unwrap().signal(), Some(15));
            assert_eq!(scene.scheduler.wait().unwrap().signal(), Some(9));
        }
    }

    #[test]
    fn a_trial_that_is_over_is_left_alone() {
        let mut scene = Scene::new("over");
        std::fs::write(scene.orders.folder.join(DONE), "").unwrap();
        assert_eq!(scene.watch(), None);
        assert!(scene.trial.try_wait().unwrap().is_none());
        assert!(scene.scheduler.try_wait().unwrap().is_none());
    }

    #[test]
    fn a_trial_whose_heartbeat_was_removed_is_ended() {
        let mut scene = Scene::new("removed");
        std::fs::remove_dir_all(&scene.orders.folder).unwrap();
        let told = scene.watch().unwrap();
        assert!(told.contains("the heartbeat is late"), "{told}");
        assert_eq!(scene.trial.wait().unwrap().signal(), Some(15));
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_trial() {
        let mut scene = Scene::new("number");
        scene.orders.begun += 1;
        let told = scene.watch().unwrap();
        assert!(told.contains("the trial has died"), "{told}");
        assert!(scene.trial.try_wait().unwrap().is_none());
    }
}
