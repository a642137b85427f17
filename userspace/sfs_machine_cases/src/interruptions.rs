//! Interference with tasks that run or wait: signals, a debugger, the freezer,
//! kills; and unusual ways to start a task.

use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{burn, ms, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{fork_burst, Process};
use sfs_testbed::scheduler::{output_of, Scheduler};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "stops_and_continues",
        about: "no task is lost by SIGSTOP and SIGCONT, running or queued, in FILTER or FAIR",
        run: stops_and_continues,
    },
    Case {
        name: "traced_in_mid_invocation",
        about: "a process that a debugger stops repeatedly keeps the same credit",
        run: traced_in_mid_invocation,
    },
    Case {
        name: "frozen_and_thawed",
        about: "running and queued tasks stop in the cgroup freezer, and all continue afterwards",
        run: frozen_and_thawed,
    },
    Case {
        name: "killed_while_queued",
        about:
            "tasks killed while they wait in FILTER, in FAIR or for a quota leave nothing behind",
        run: killed_while_queued,
    },
    Case {
        name: "killed_while_forking",
        about: "processes are killed during clone: the end of every invocation is counted",
        run: killed_while_forking,
    },
    Case {
        name: "vfork_and_exec_under_load",
        about: "hundreds of programs started by vfork while all CPUs are busy all end",
        run: vfork_and_exec_under_load,
    },
    Case {
        name: "thread_becomes_another_program",
        about: "a thread calls exec while other threads of its process run: the new program runs",
        run: thread_becomes_another_program,
    },
    Case {
        name: "born_in_a_sandbox",
        about: "a child cloned into a sandbox's cgroup belongs to it from its first instruction",
        run: born_in_a_sandbox,
    },
];

/// Expects that each of `processes` continues to use CPU time.
fn expect_progress(processes: &[Process]) -> Result<()> {
    let before: Vec<Duration> = processes.iter().map(|one| one.cpu()).collect();
    let mut all = processes.iter().zip(before);
    let go_on = all.all(|(one, cpu)| wait_until(PATIENCE, || one.cpu() > cpu + ms(1)));
    ensure!(go_on, "a task no longer runs");
    Ok(())
}

fn send(processes: &[Process], signal: Signal) -> Result<()> {
    let mut all = processes.iter();
    all.try_for_each(|one| kill(one.pid(), signal))
        .with_context(|| format!("cannot send {signal}"))
}

/// Starts more hogs than CPUs, so that some run and some wait: in FILTER, or in FAIR.
fn crowd(bench: &Bench, scheduler: &Scheduler, in_fair: bool) -> Result<Vec<Process>> {
    let count = 3 * bench.cpus();
    let before = scheduler.stats()?.demotions;
    let hogs = fork_burst(count, Duration::MAX)?;
    if in_fair {
        scheduler.wait_for("the demotions", |stats| {
            stats.demotions >= before + count as u64
        })?;
    }
    Ok(hogs)
}

/// Loads the scheduler so that hogs are in FAIR after 1 ms, or never.
fn load(bench: &Bench, in_fair: bool) -> Result<Scheduler> {
    load_with(bench, in_fair, "")
}

/// The same for a case that sets a quota, even on a kernel that does not report
/// quotas.
fn load_without_quotas(bench: &Bench, in_fair: bool) -> Result<Scheduler> {
    load_with(bench, in_fair, "--ignore-quotas")
}

fn load_with(bench: &Bench, in_fair: bool, more: &str) -> Result<Scheduler> {
    let slice_us = if in_fair { 1_000 } else { 10_000_000 };
    bench.load_sfs(&format!("--slice-us {slice_us} --no-overload {more}"))
}

fn stops_and_continues(bench: &Bench) -> Result<()> {
    for in_fair in [false, true] {
        let scheduler = load(bench, in_fair)?;
        let hogs = crowd(bench, &scheduler, in_fair)?;
        for _ in 0..5 {
            send(&hogs, Signal::SIGSTOP)?;
            sleep(ms(30));
            let stopped: Vec<Duration> = hogs.iter().map(|one| one.cpu()).collect();
            sleep(ms(60));
            let still = hogs
                .iter()
                .zip(&stopped)
                .all(|(one, cpu)| one.cpu() == *cpu);
            ensure!(still, "a stopped process runs");
            send(&hogs, Signal::SIGCONT)?;
            sleep(ms(20));
        }
        // In FILTER the queued hogs get a CPU only after the first ones have
        // ended.
        let first = if in_fair { hogs.len() } else { bench.cpus() };
        let (running, rest): (Vec<_>, Vec<_>) =
            hogs.into_iter().enumerate().partition(|(i, _)| *i < first);
        let running: Vec<Process> = running.into_iter().map(|(_, one)| one).collect();
        let rest: Vec<Process> = rest.into_iter().map(|(_, one)| one).collect();
        if in_fair {
            expect_progress(&running)?;
        }
        drop(running);
        if !rest.is_empty() {
            wait_until(PATIENCE, || rest.iter().any(|one| one.cpu() > ms(50)));
            ensure!(
                rest.iter().any(|one| one.cpu() > ms(50)),
                "the hogs that waited do not run"
            );
        }
        drop(rest);
        scheduler.finish()?;
    }
    Ok(())
}

fn traced_in_mid_invocation(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load_sfs("--slice-us 200000")?;
    let mut traced = Process::burner(ms(100))?;
    let pid = traced.pid();
    trace(libc::PTRACE_SEIZE, pid)?;
    for _ in 0..10 {
        sleep(ms(4));
        trace(libc::PTRACE_INTERRUPT, pid)?;
        let status = waitpid(pid, Some(WaitPidFlag::__WALL))?;
        if matches!(status, WaitStatus::Exited(..)) {
            break;
        }
        sleep(ms(6));
        trace(libc::PTRACE_CONT, pid)?;
    }
    trace(libc::PTRACE_INTERRUPT, pid)?;
    waitpid(pid, Some(WaitPidFlag::__WALL))?;
    trace(libc::PTRACE_DETACH, pid)?;
    traced.wait()?;
    bench.say(format_args!(
        "100 ms of work took {:?}",
        traced.turnaround()
    ));
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 0, "{} demotions", stats.demotions);
    scheduler.finish()
}

/// Makes a ptrace request without data.
fn trace(request: libc::c_uint, pid: Pid) -> Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: neither address nor data are used by these requests.
    let done = unsafe { libc::ptrace(request, pid.as_raw(), none, none) };
    ensure!(
        done == 0,
        "cannot trace {pid}: {}",
        std::io::Error::last_os_error()
    );
    Ok(())
}

fn frozen_and_thawed(bench: &Bench) -> Result<()> {
    for in_fair in [false, true] {
        let scheduler = load(bench, in_fair)?;
        let group = Cgroup::new("cold")?;
        let hogs = crowd(bench, &scheduler, in_fair)?;
        hogs.iter().try_for_each(|one| group.take(one.pid()))?;
        for _ in 0..3 {
            group.set("cgroup.freeze", "1")?;
            sleep(ms(100));
            let frozen: Vec<Duration> = hogs.iter().map(|one| one.cpu()).collect();
            sleep(ms(100));
            let still = hogs.iter().zip(&frozen).all(|(one, cpu)| one.cpu() == *cpu);
            ensure!(still, "a frozen process runs");
            group.set("cgroup.freeze", "0")?;
            sleep(ms(50));
        }
        let used = group.cpu_time()?;
        sleep(ms(200));
        let used = group.cpu_time()? - used;
        let machine = bench.cpus() as u32 * ms(200);
        bench.say(format_args!("after the thaw: {used:?} of {machine:?}"));
        ensure!(used > machine * 8 / 10, "not all CPUs are in use");
        drop(hogs);
        scheduler.finish()?;
    }
    Ok(())
}

fn killed_while_queued(bench: &Bench) -> Result<()> {
    sfs_testbed::cgroup::enable_cpu_controller()?;
    for in_fair in [false, true] {
        let scheduler = load_without_quotas(bench, in_fair)?;
        let group = Cgroup::new("limited")?;
        group.set("cpu.max", "1000 1000000")?;
        for _ in 0..2 {
            let mut hogs = crowd(bench, &scheduler, in_fair)?;
            group.take(hogs[0].pid())?;
            group.take(hogs[1].pid())?;
            sleep(ms(20));
            send(&hogs, Signal::SIGKILL)?;
            let gone = wait_until(PATIENCE, || hogs.iter_mut().all(Process::has_ended));
            ensure!(gone, "a killed process does not end");
        }
        let stats = scheduler.wait_for("all ends to be counted", |stats| {
            stats.completions == stats.arrivals
        })?;
        bench.say(format_args!("{} invocations", stats.arrivals));
        let mut after = Process::burner(ms(5))?;
        after.wait()?;
        bench.at_most("a process afterwards", after.turnaround(), ms(30))?;
        scheduler.finish()?;
    }
    Ok(())
}

fn killed_while_forking(bench: &Bench) -> Result<()> {
    const TIMES: u32 = 200;
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    for i in 0..TIMES {
        let mut forker = Process::spawn(|_| loop {
            let _ = std::thread::spawn(|| {}).join();
        })?;
        // A different phase of a fork each time.
        sleep(Duration::from_micros(1500 + u64::from(i * 137 % 1000)));
        send(std::slice::from_ref(&forker), Signal::SIGKILL)?;
        let gone = wait_until(PATIENCE, || forker.has_ended());
        ensure!(gone, "a killed process does not end");
    }
    // A thread that was counted at its fork but never existed would leave its invocation
    // open.
    let running = hogs.len() as u64;
    let stats = scheduler.wait_for("all ends to be counted", |stats| {
        stats.completions + running == stats.arrivals
    })?;
    bench.say(format_args!("{} invocations", stats.arrivals));
    drop(hogs);
    scheduler.finish()
}

fn vfork_and_exec_under_load(bench: &Bench) -> Result<()> {
    const PROGRAMS: u64 = 300;
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    for _ in 0..PROGRAMS {
        // The standard library starts programs with CLONE_VFORK.
        let output = output_of(&mut Command::new("/bin/true"))?;
        ensure!(output.status.success(), "{}", output.status);
    }
    let stats = scheduler.wait_for("their ends", |stats| {
        stats.completions >= before.completions + PROGRAMS
    })?;
    let arrivals = stats.arrivals - before.arrivals;
    bench.say(format_args!("{arrivals} arrivals"));
    ensure!(arrivals == PROGRAMS, "{arrivals} arrivals");
    drop(hogs);
    scheduler.finish()
}

fn thread_becomes_another_program(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    for _ in 0..20 {
        let mut process = Process::spawn(|_| {
            for _ in 0..3 {
                std::thread::spawn(|| burn(ms(10_000)));
            }
            let exec = std::thread::spawn(|| {
                burn(ms(2));
                let path = c"/bin/true";
                let arguments = [path.as_ptr(), std::ptr::null()];
                // SAFETY: the string and the array end as execv() expects.
                unsafe { libc::execv(path.as_ptr(), arguments.as_ptr()) };
            });
            let _ = exec.join();
            panic!("exec failed");
        })?;
        process.wait()?;
    }
    drop(hogs);
    scheduler.finish()
}

fn born_in_a_sandbox(bench: &Bench) -> Result<()> {
    let sandbox = Cgroup::new("functions/born")?;
    let scheduler = bench.load_sfs("--slice-us 20000 --cgroup functions/*")?;
    let before = scheduler.stats()?;
    for _ in 0..20 {
        let mut child = Process::spawn_in(&sandbox, |report| report.burn(ms(5)))?;
        child.wait()?;
    }
    let stats = scheduler.wait_for("their ends", |stats| {
        stats.completions >= before.completions + 20
    })?;
    ensure!(stats.arrivals - before.arrivals == 20, "{stats:?}");
    ensure!(stats.demotions == before.demotions, "{stats:?}");
    scheduler.finish()
}
