//! Hints: what the platform says, and what becomes of hints for nobody.

use std::process::Command;

use anyhow::{ensure, Result};
use nix::unistd::Pid;

use crate::case::{Bench, Case};
use crate::clock::{ms, sleep};
use crate::process::Process;
use crate::scheduler::{output_of, Scheduler};

pub const CASES: &[Case] = &[
    Case {
        name: "hint_takes_effect_before_the_next_dispatch",
        about: "a demoted process that waits behind FAIR runs at once, for S",
        run: hint_takes_effect_before_the_next_dispatch,
    },
    Case {
        name: "hint_and_fork_are_one_invocation",
        about: "a hint for a process that has just started adds no arrival",
        run: hint_and_fork_are_one_invocation,
    },
    Case {
        name: "hints_for_nobody_harm_nobody",
        about: "hints for dead, reused and foreign process ids are counted and do nothing",
        run: hints_for_nobody_harm_nobody,
    },
];

const SOCKET: &str = "/tmp/hint.sock";

fn load(bench: &Bench, options: &str) -> Result<Scheduler> {
    bench.load(&format!(
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
    let scheduler = load(bench, "")?;
    // Three for each CPU, so that any one of them waits most of the time.
    let hogs = bench.each_cpu(|_| bench.demoted_hogs(&scheduler))?;
    let hogs: Vec<Process> = hogs.into_iter().flatten().take(3 * bench.cpus()).collect();
    let target = &hogs[1];
    let before = (target.cpu(), scheduler.stats()?);
    hint(bench, target.pid(), &[])?;
    let stats = scheduler.wait_for("the hint", |stats| stats.begun_by_hint == 1)?;
    ensure!(stats.arrivals == before.1.arrivals + 2, "{stats:?}"); // and the sender
    scheduler.wait_for("its demotion", |stats| {
        stats.demotions == before.1.demotions + 1
    })?;
    let got = target.cpu() - before.0;
    bench.say(format_args!("it got {got:?} until it was demoted again"));
    ensure!(got >= ms(36), "it got {got:?}, not S");
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
    let scheduler = load(bench, "")?;
    let mut dead = Process::spawn(|_| {})?;
    dead.wait()?;
    hint(bench, dead.pid(), &[])?;
    scheduler.wait_for("a dead one", |stats| stats.hints_dead == 1)?;

    // This process was there before the scheduler: it is no function.
    hint(bench, Pid::this(), &[])?;
    scheduler.wait_for("a foreign one", |stats| stats.hints_foreign == 1)?;

    // A request from right after boot cannot have been for a process of now.
    let other = Process::spawn(|_| sleep(ms(3000)))?;
    sleep(ms(50));
    hint(bench, other.pid(), &["--arrival-us", "1"])?;
    scheduler.wait_for("a stale one", |stats| stats.hints_stale == 1)?;
    let stats = scheduler.stats()?;
    ensure!(stats.begun_by_hint == 0, "{stats:?}");
    drop(other);
    scheduler.finish()
}
