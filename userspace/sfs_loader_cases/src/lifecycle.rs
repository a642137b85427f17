//! Loading and unloading, and failures of both.

use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, now, since, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{fork_burst, Process};
use sfs_testbed::scheduler::{ops, output_of, state, wait_until_disabled};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "loads_and_stops_on_sigint",
        about: "it is enabled under its name, and SIGINT unloads it with exit status 0",
        run: |bench| loads_and_stops_on(bench, Signal::SIGINT),
    },
    Case {
        name: "loads_and_stops_on_sigterm",
        about: "the same with SIGTERM",
        run: |bench| loads_and_stops_on(bench, Signal::SIGTERM),
    },
    Case {
        name: "survives_sigkill_of_the_loader",
        about: "the machine returns to EEVDF at once, and the loader can load again",
        run: survives_sigkill_of_the_loader,
    },
    Case {
        name: "refuses_a_second_loader",
        about: "a second loader fails with the reason, and the first continues",
        run: refuses_a_second_loader,
    },
    Case {
        name: "unloads_with_full_queues",
        about: "tasks that wait in FILTER and in FAIR continue under EEVDF",
        run: unloads_with_full_queues,
    },
    Case {
        name: "verifier_has_little_to_do",
        about: "the verifier needs at most 60,000 instructions for a program and 150,000 for all",
        run: verifier_has_little_to_do,
    },
    Case {
        name: "loads_and_unloads_8_times",
        about: "all tasks still run after each of 8 cycles under load",
        run: loads_and_unloads_8_times,
    },
];

/// Checks that a task gets CPU time, whichever scheduler is loaded.
fn ensure_tasks_run() -> Result<()> {
    Process::burner(ms(5))?.wait()
}

fn loads_and_stops_on(bench: &Bench, signal: Signal) -> Result<()> {
    let scheduler = bench.load("")?;
    let ops = ops();
    bench.say(format_args!("ops: {ops}"));
    ensure!(ops.starts_with("sfs_"), "the scheduler's name is {ops}");
    ensure_tasks_run()?;
    ensure!(scheduler.stats()?.completions >= 1, "no invocation counted");

    let (status, log) = scheduler.stop(signal)?;
    ensure!(status.code() == Some(0), "{status}: {log}");
    ensure!(
        log.contains("unregistered from user space"),
        "exit kind: {log}"
    );
    ensure_tasks_run()
}

fn survives_sigkill_of_the_loader(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 5000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let (status, _) = scheduler.stop(Signal::SIGKILL)?;
    ensure!(status.code().is_none(), "{status}");
    ensure_tasks_run()?;
    drop(hogs);

    let scheduler = bench.load("")?;
    ensure_tasks_run()?;
    scheduler.finish()
}

fn refuses_a_second_loader(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("")?;
    let second = output_of(&mut std::process::Command::new(bench.program()))?;
    let said = String::from_utf8_lossy(&second.stderr);
    bench.say(format_args!("{}: {}", second.status, said.trim()));
    ensure!(!second.status.success(), "the second loader did not fail");
    ensure!(
        said.contains("another sched_ext scheduler is loaded (sfs_"),
        "the reason is missing"
    );
    ensure!(state() == "enabled", "the first one is {}", state());
    ensure_tasks_run()?;
    ensure!(
        scheduler.stats()?.arrivals > 0,
        "the first one does not count"
    );
    scheduler.finish()
}

fn unloads_with_full_queues(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000 --no-overload")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let burst = fork_burst(2 * bench.cpus(), Duration::MAX)?;
    let start = now();
    scheduler.finish()?;
    // Meanwhile the kernel uses one first-in-first-out queue, so kernel threads wait
    // behind all of these. With 64 CPUs that took 20.6 s; docs/reliability.md has it as a limit.
    let limit = ms(500) * u32::try_from(bench.cpus())?;
    bench.at_most("unload", since(start), limit.max(ms(5000)))?;

    let before: Vec<_> = burst.iter().chain(&hogs).map(|one| one.cpu()).collect();
    let mut all = burst.iter().chain(&hogs).zip(before);
    let go_on = all.all(|(one, cpu)| wait_until(PATIENCE, || one.cpu() > cpu));
    ensure!(go_on, "a task no longer runs");
    Ok(())
}

fn loads_and_unloads_8_times(bench: &Bench) -> Result<()> {
    // The load leaves time for the verifier, or these cycles would take minutes. It is half
    // of one CPU's capacity, because emulated CPUs share one CPU of the host.
    let pause = ms(2) * u32::try_from(bench.cpus())?;
    let blockers = bench.each_cpu(|_| {
        Process::spawn(|report| loop {
            report.burn(ms(1));
            sleep(pause);
        })
    })?;
    for _ in 0..8 {
        let before: Vec<_> = blockers.iter().map(|one| one.cpu()).collect();
        let scheduler = bench.load("")?;
        sleep(ms(50));
        scheduler.finish()?;
        let go_on = blockers
            .iter()
            .zip(before)
            .all(|(one, cpu)| one.cpu() > cpu);
        ensure!(go_on, "a task no longer runs");
    }
    wait_until_disabled()
}

fn verifier_has_little_to_do(bench: &Bench) -> Result<()> {
    const LARGEST: u64 = 60_000;
    const ALL: u64 = 150_000;
    let scheduler = bench.load("--verbose")?;
    let log = scheduler.log();
    scheduler.finish()?;
    let counts = verified(&log);
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let largest = counts.iter().max_by_key(|(_, count)| *count);
    let (name, count) = largest.context("the verifier's log is missing")?;
    bench.say(format_args!(
        "{} programs, {all} instructions, {count} of them for {name}",
        counts.len()
    ));
    ensure!(counts.len() >= 20, "programs are missing");
    ensure!(*count <= LARGEST && all <= ALL, "too many instructions");
    Ok(())
}

/// Returns the programs in libbpf's log of the load, each with the number of instructions
/// that the verifier processed. Linux 7.2 has another line, with those of each function.
fn verified(log: &str) -> Vec<(&str, u64)> {
    let mut program = "";
    let mut counts = Vec::new();
    for line in log.lines() {
        if let Some((before, _)) = line.split_once("': -- BEGIN PROG LOAD LOG --") {
            program = before.rsplit('\'').next().unwrap_or_default();
        } else if let Some((_, rest)) = line.split_once(" processed ") {
            let count = rest
                .split_once(" insns")
                .and_then(|(count, _)| count.parse().ok());
            counts.extend(count.map(|count| (program, count)));
        }
    }
    counts
}
