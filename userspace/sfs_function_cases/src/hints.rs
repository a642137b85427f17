//! Hints of the platform, and hints for nonexistent processes.

use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::unistd::{setuid, Pid, Uid};
use sfs_hint::{Address, Client, Form, Hint};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{burn, ms, now, sleep, sleep_until, wait_until, PATIENCE};
use sfs_testbed::process::{as_real_time, Process};
use sfs_testbed::scheduler::{output_of, Scheduler};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "hint_takes_effect_before_the_next_dispatch",
        about: "a hint lets a demoted process that waits behind FAIR run at once, for S",
        run: hint_takes_effect_before_the_next_dispatch,
    },
    Case {
        name: "hint_and_fork_are_one_invocation",
        about: "a hint for a process that has just started adds no arrival",
        run: hint_and_fork_are_one_invocation,
    },
    Case {
        name: "hints_for_nobody_harm_nobody",
        about: "hints for dead, reused and foreign process ids are counted and have no effect",
        run: hints_for_nobody_harm_nobody,
    },
    Case {
        name: "hints_of_other_users_are_denied",
        about: "hints are accepted only from allowed users and from allowed cgroups",
        run: hints_of_other_users_are_denied,
    },
    Case {
        name: "flood_of_hints_costs_less_than_a_cpu",
        about: "100,000 hints a second for 100 sandboxes take less than a CPU and delay no short process",
        run: flood_of_hints_costs_less_than_a_cpu,
    },
];

const SOCKET: &str = "/tmp/hint.sock";

fn load(bench: &Bench, options: &str) -> Result<Scheduler> {
    bench.load_sfs(&format!(
        "--slice-us 40000 --no-overload --hint-listen {SOCKET} {options}"
    ))
}

fn hint(bench: &Bench, pid: Pid, more: &[&str]) -> Result<()> {
    let mut command = Command::new(bench.program());
    command.args(["hint", "--to", SOCKET, &pid.to_string()]);
    let output = output_of(command.args(more))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "no hint was sent: {said}");
    Ok(())
}

fn hint_takes_effect_before_the_next_dispatch(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    // Because CPUs are emulated in turn, the hint's sender takes longer the
    // more CPUs are busy. It should not be demoted.
    let slice = ms(40).max(ms(10) * u32::try_from(bench.cpus())?);
    let scheduler = bench.load_sfs(&format!(
        "--slice-us {} --no-overload --hint-listen {SOCKET}",
        slice.as_micros()
    ))?;
    // Three for each CPU, so that each waits most of the time.
    let hogs = bench.each_cpu(|_| bench.demoted_hogs(&scheduler))?;
    let hogs: Vec<Process> = hogs.into_iter().flatten().take(3 * bench.cpus()).collect();
    let demoted = || hogs.iter().all(|hog| hog.cpu() > slice);
    ensure!(wait_until(PATIENCE, demoted), "the hogs do not run");
    let target = &hogs[1];
    let before = (target.cpu(), scheduler.stats()?);
    hint(bench, target.pid(), &[])?;
    let stats = scheduler.wait_for("the hint", |stats| stats.begun_by_hint == 1)?;
    // One is the sender, which has ended. It may have been demoted all the same.
    ensure!(stats.arrivals == before.1.arrivals + 2, "{stats:?}");
    let demotions = stats.demotions;
    scheduler.wait_for("its demotion", |stats| stats.demotions > demotions)?;
    let got = target.cpu() - before.0;
    bench.say(format_args!("it got {got:?} until it was demoted again"));
    ensure!(got >= slice * 9 / 10, "it got {got:?}, not S");
    drop(hogs);
    scheduler.finish()
}

fn hint_and_fork_are_one_invocation(bench: &Bench) -> Result<()> {
    let scheduler = load(bench, "")?;
    let sleeper = Process::spawn(|_| sleep(ms(3000)))?;
    sleep(ms(50));
    let before = scheduler.stats()?;
    hint(bench, sleeper.pid(), &["--function", "resize"])?;
    let stats = scheduler.wait_for("the hint", |stats| stats.merged > before.merged)?;
    ensure!(stats.begun_by_hint == 0, "{stats:?}");
    drop(sleeper);
    scheduler.finish()
}

fn hints_for_nobody_harm_nobody(bench: &Bench) -> Result<()> {
    // A process may be this much younger than its request, which then started it.
    const COLD_START: Duration = ms(10_000);
    let scheduler = load(bench, "")?;
    let mut dead = Process::spawn(|_| {})?;
    dead.wait()?;
    hint(bench, dead.pid(), &[])?;
    scheduler.wait_for("a hint for a dead process", |stats| stats.hints_dead == 1)?;

    // This process is older than the scheduler, so it is not a function.
    hint(bench, Pid::this(), &[])?;
    scheduler.wait_for("a hint for a foreign process", |stats| {
        stats.hints_foreign == 1
    })?;

    // A request long ago, shortly after boot, cannot be for a new process.
    sleep_until(COLD_START + ms(1000));
    let other = Process::spawn(|_| sleep(ms(3000)))?;
    sleep(ms(50));
    hint(bench, other.pid(), &["--arrival-us", "1"])?;
    scheduler.wait_for("a stale hint", |stats| stats.hints_stale == 1)?;

    // No current process started in the first tick.
    hint(bench, other.pid(), &["--start", "1"])?;
    scheduler.wait_for("a hint for another start time", |stats| {
        stats.hints_stale == 2
    })?;
    let stats = scheduler.stats()?;
    ensure!(stats.begun_by_hint == 0, "{stats:?}");
    drop(other);
    scheduler.finish()
}

fn hints_of_other_users_are_denied(bench: &Bench) -> Result<()> {
    let scheduler = load(
        bench,
        "--hint-mode 0666 --hint-allow-uid 1001 --hint-allow-cgroup platform/sender",
    )?;
    let tenant = Cgroup::new("platform/sender2")?;
    let platform = Cgroup::new("platform/sender/below")?;
    let sends = |group: &Cgroup, uid| Process::spawn_in(group, move |_| send_as(uid));
    let mut senders = Vec::new();
    for (group, uid, taken) in [
        (&tenant, 1000, false),
        (&tenant, 1001, true),
        (&platform, 1000, true),
        (&tenant, 65534, false),
        (&tenant, 0, true),
    ] {
        let before = scheduler.stats()?;
        senders.push(sends(group, uid)?);
        let stats = scheduler.wait_for("the hint", |stats| {
            stats.hints + stats.hints_denied > before.hints + before.hints_denied
        })?;
        let is_taken = stats.hints > before.hints;
        ensure!(is_taken == taken, "user {uid}: {stats:?}");
    }
    let log = scheduler.log();
    ensure!(
        log.contains("of user 1000"),
        "the warning is missing: {log}"
    );
    drop(senders);
    scheduler.finish()
}

/// Sends a hint for this process as user `uid`, and sleeps for 30 s.
fn send_as(uid: u32) {
    let sent = setuid(Uid::from_raw(uid)).is_ok()
        && Client::connect(&Address::Unix(SOCKET.into()), Form::Text)
            .is_ok_and(|mut client| client.send(&Hint::of(Pid::this().as_raw())).is_ok());
    assert!(sent, "user {uid} cannot send");
    sleep(ms(30_000));
}

fn flood_of_hints_costs_less_than_a_cpu(bench: &Bench) -> Result<()> {
    const MILLISECONDS: u32 = 1000;
    let scheduler = load(bench, "")?;
    let sandboxes: Vec<Process> = (0..100)
        .map(|_| Process::spawn(|_| sleep(ms(60_000))))
        .collect::<Result<_>>()?;
    sleep(ms(200));
    let before = (scheduler.cpu_time()?, now());
    // In a separate real-time process, so that nothing delays it.
    let mut sender = Process::spawn(|report| {
        let sent = as_real_time(|| send_flood(&sandboxes, MILLISECONDS));
        report.value.store(sent.unwrap_or(0), Relaxed);
    })?;
    sleep(ms(300));
    let mut short = Process::spawn(|_| burn(ms(10)))?;
    short.wait()?;
    sender.wait()?;
    let used = scheduler.cpu_time()? - before.0;
    let took = now() - before.1;
    let sent = sender.value.load(Relaxed);
    let stats = scheduler.wait_for("the hints", |stats| stats.hints >= sent)?;
    bench.say(format_args!(
        "{sent} hints in {took:?}: {} applied, {used:?} of CPU time",
        stats.hints_applied
    ));
    ensure!(
        sent >= 90 * u64::from(MILLISECONDS),
        "only {sent} were accepted"
    );
    ensure!(stats.hints_applied == sent, "not all hints were applied");
    bench.at_most("the loader's CPU time", used, took)?;
    bench.at_most("a short process's turnaround", short.turnaround(), ms(30))?;
    drop(sandboxes);
    scheduler.finish()
}

/// Sends a hint for each sandbox every millisecond; returns how many were accepted.
fn send_flood(sandboxes: &[Process], milliseconds: u32) -> Result<u64> {
    let mut client = Client::connect(&SOCKET.parse()?, Form::Binary)?;
    let start = now();
    let mut sent = 0;
    for tick in 0..milliseconds {
        sleep_until(start + tick * ms(1));
        let arrived_at_ns = u64::try_from(now().as_nanos()).context("the clock")?;
        let hint = |process: &Process| Hint {
            arrived_at_ns: Some(arrived_at_ns),
            ..Hint::of(process.pid().as_raw())
        };
        let hints: Vec<Hint> = sandboxes.iter().map(hint).collect();
        sent += client.send_all(&hints)? as u64;
    }
    Ok(sent)
}
