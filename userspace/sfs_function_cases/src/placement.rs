//! CPUs: pinned tasks, migration, hotplug.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::{enable_cpuset_controller, Cgroup};
use sfs_testbed::clock::{burn, ms, now, since, sleep, wait_until, PATIENCE};
use sfs_testbed::process::{
    as_real_time, begin_together, chain_on, confine, pin_self, set_nice, Process,
};
use sfs_testbed::report::Report;
use sfs_testbed::scheduler::{enable_seq, state, Scheduler};
use sfs_testbed::server::{Server, Worker};
use sfs_testbed::skip::Skip;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "pinned_runs_in_filter",
        about: "a fresh process pinned to a CPU full of hogs runs there at once",
        run: pinned_runs_in_filter,
    },
    Case {
        name: "pinned_runs_in_fair",
        about: "demoted processes pinned to a CPU full of FILTER work make progress",
        run: pinned_runs_in_fair,
    },
    Case {
        name: "migrates_while_running",
        about: "a running process follows its affinity to every CPU",
        run: migrates_while_running,
    },
    Case {
        name: "migrates_while_queued",
        about: "queued processes follow their affinity, and none is lost",
        run: migrates_while_queued,
    },
    Case {
        name: "migrates_while_blocked",
        about: "a process wakes up on the CPU that it was confined to while it slept",
        run: migrates_while_blocked,
    },
    Case {
        name: "affinity_and_nice_ping_pong",
        about: "affinity and nice value of running, queued and forking processes keep changing: none is lost",
        run: affinity_and_nice_ping_pong,
    },
    Case {
        name: "queue_full_of_others",
        about: "a CPU finds the one process that it may run among 300 in FILTER for other CPUs",
        run: queue_full_of_others,
    },
    Case {
        name: "restarts_on_cpu_hotplug",
        about: "a CPU goes offline and online under load: the loader restarts, no task is lost, and a warm server stays a function",
        run: restarts_on_cpu_hotplug,
    },
    Case {
        name: "suspend_and_resume",
        about: "the machine sleeps (S3) under load: the loader restarts, no task is lost",
        run: suspend_and_resume,
    },
    Case {
        name: "isolated_cpu_is_left_alone",
        about: "a process on a CPU of an isolated partition is not disturbed while all other CPUs are saturated",
        run: isolated_cpu_is_left_alone,
    },
    Case {
        name: "isolcpus_are_refused_with_a_reason",
        about: "with CPUs isolated on the kernel's command line, the loader says what to do, and \
                warns about nohz_full and real-time work",
        run: isolcpus_are_refused_with_a_reason,
    },
];

fn pinned_runs_in_filter(bench: &Bench) -> Result<()> {
    // Because CPUs are emulated in turn, starts and ends take longer the more
    // CPUs are busy.
    let slice = ms(20).max(ms(5) * u32::try_from(bench.cpus())?);
    let scheduler = bench.load_sfs(&format!("--slice-us {}", slice.as_micros()))?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    // Upwards and downwards: new processes preempt the CPUs in turn, so in one round all of
    // them may start on the CPU that they are pinned to.
    for cpu in (0..bench.cpus()).chain((0..bench.cpus()).rev()) {
        let mut pinned = Process::spawn(|report| {
            pin_self(cpu);
            report.burn(ms(10));
        })?;
        pinned.wait()?;
        ensure!(pinned.cpu_number() == cpu, "it runs on another CPU");
        bench.at_most("turnaround", pinned.turnaround(), slice + ms(5))?;
    }
    let after = scheduler.stats()?;
    ensure!(
        after.pinned > before.pinned,
        "no task was counted as pinned"
    );
    ensure!(after.demotions == before.demotions, "one was demoted");
    drop(hogs);
    scheduler.finish()
}

fn pinned_runs_in_fair(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload --fair-max-wait-ms 100")?;
    let cpu = bench.cpus() - 1;
    let pinned_hog = || {
        Process::spawn(|report| {
            pin_self(cpu);
            report.burn(Duration::MAX);
        })
    };
    let hogs = [pinned_hog()?, pinned_hog()?];
    scheduler.wait_for("the hogs' demotion", |stats| stats.demotions >= 2)?;
    let chains = (bench.saturate_filter()?, chain_on(cpu, ms(10))?);
    sleep(ms(300));
    let before = hogs.each_ref().map(|hog| hog.cpu());
    hogs.iter().for_each(|hog| hog.forget_gap());
    sleep(ms(1000));
    for (hog, before) in hogs.iter().zip(before) {
        let progress = hog.cpu() - before;
        bench.say(format_args!(
            "{progress:?} in 1 s on CPU {}, longest gap {:?}",
            hog.cpu_number(),
            hog.longest_gap()
        ));
        ensure!(hog.cpu_number() == cpu, "it runs on another CPU");
        // FAIR has 8 % of the CPU, for both hogs and for kernel threads that need more
        // than their first 4 ms. The rest for each varies: 19 to 65 ms were seen.
        ensure!(progress >= ms(8), "it makes little progress");
        // The bound is for FAIR's head. Ahead of this hog may be the other one, and
        // kernel threads of this CPU with less virtual time.
        ensure!(hog.longest_gap() <= ms(1000), "it waits too long");
    }
    drop((hogs, chains));
    scheduler.finish()
}

/// Waits until `hog` burns CPU time on `cpu`.
fn expect_on(hog: &Process, cpu: usize) -> Result<()> {
    let used = hog.cpu();
    let there = wait_until(PATIENCE, || hog.cpu_number() == cpu && hog.cpu() > used);
    ensure!(there, "it does not run on CPU {cpu}");
    Ok(())
}

fn migrates_while_running(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 60000")?;
    let hog = Process::hog()?;
    let follow = || {
        (0..bench.cpus()).try_for_each(|cpu| {
            confine(hog.pid(), &[cpu])?;
            expect_on(&hog, cpu)
        })
    };
    follow()?; // with credit
    scheduler.wait_for("its demotion", |stats| stats.demotions == 1)?;
    follow()?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    drop(hog);
    scheduler.finish()
}

fn migrates_while_queued(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 200000 --no-overload --fair-max-wait-ms 20")?;
    // Three for each CPU: two wait, first in FILTER, later in FAIR.
    let hogs: Result<Vec<_>> = (0..3 * bench.cpus()).map(|_| Process::hog()).collect();
    let hogs = hogs?;
    for round in 0..8 {
        for (i, hog) in hogs.iter().enumerate() {
            confine(hog.pid(), &[(i + round) % bench.cpus()])?;
        }
        sleep(ms(20));
    }
    for (i, hog) in hogs.iter().enumerate() {
        expect_on(hog, (i + 7) % bench.cpus())?;
    }
    ensure!(
        scheduler.stats()?.pinned > 0,
        "no task was counted as pinned"
    );
    drop(hogs);
    scheduler.finish()
}

fn migrates_while_blocked(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 50000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    for cpu in 0..bench.cpus() {
        let mut sleeper = Process::spawn(|report| {
            burn(ms(2));
            sleep(ms(40));
            report.burn(ms(2));
        })?;
        sleep(ms(20));
        confine(sleeper.pid(), &[cpu])?;
        sleeper.wait()?;
        ensure!(sleeper.cpu_number() == cpu, "it woke up on another CPU");
        bench.at_most("turnaround", sleeper.turnaround(), ms(60))?;
    }
    drop(hogs);
    scheduler.finish()
}

fn affinity_and_nice_ping_pong(bench: &Bench) -> Result<()> {
    const ROUNDS: usize = 300;
    let scheduler = bench.load_sfs("--slice-us 20000 --no-overload")?;
    let hogs = (0..2 * bench.cpus()).map(|_| Process::hog());
    let families = (0..bench.cpus()).map(|_| Process::spawn(threads_come_and_go));
    let all = hogs.chain(families).collect::<Result<Vec<_>>>()?;
    let cpu = |number: usize| number % bench.cpus();
    for round in 0..ROUNDS {
        for (i, one) in all.iter().enumerate() {
            match (round + i) % 3 {
                0 => confine(one.pid(), &[cpu(i + round)])?,
                1 => confine(one.pid(), &[cpu(i + round), cpu(i * round)])?,
                _ => set_nice(one.pid(), ((i * 7 + round) % 40) as i32 - 20)?,
            }
        }
        sleep(ms(3));
    }
    for (i, one) in all.iter().enumerate() {
        set_nice(one.pid(), 0)?;
        confine(one.pid(), &[cpu(i)])?;
    }
    for (i, one) in all.iter().enumerate() {
        expect_on(one, cpu(i))?;
    }
    drop(all);
    scheduler.finish()
}

/// Burns CPU time, and starts threads that do, until it is stopped.
fn threads_come_and_go(report: &Report) {
    while !report.is_stopped() {
        let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| burn(ms(1)))).collect();
        report.burn(ms(1));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn queue_full_of_others(bench: &Bench) -> Result<()> {
    let others: Vec<usize> = (1..bench.cpus()).collect();
    ensure!(others.len() > 1, Skip("it takes three CPUs"));
    // Together they take 5 s on four CPUs, and longer on more emulated CPUs, where the rest
    // of the case takes longer too.
    let demand = ms(1250) * u32::try_from(bench.cpus() * others.len())? / 300;
    let slice = demand + ms(10);
    let scheduler = bench.load_sfs(&format!("--slice-us {} --no-overload", slice.as_micros()))?;
    // They inherit their affinity. A process that is moved during a page fault
    // would hold locks that it shares with its parent while it is queued, and
    // the next fork would wait for them.
    let crowd = as_real_time(|| {
        confine(Pid::this(), &others)?;
        let crowd = begin_together(300, demand)?;
        confine(Pid::this(), &(0..bench.cpus()).collect::<Vec<_>>())?;
        Ok(crowd)
    })?;
    // The first CPU has work too, so that it is not idle.
    let chain = chain_on(0, ms(5))?;
    let begun = || crowd.iter().any(|one| !one.cpu().is_zero());
    ensure!(wait_until(PATIENCE, begun), "the crowd does not start");
    let mut elsewhere = 0;
    for _ in 0..10 {
        // The parent runs in FAIR, and could otherwise wait for long during the fork.
        let mut fresh = as_real_time(|| Process::burner(ms(3)))?;
        fresh.wait()?;
        let left = crowd.iter().filter(|one| one.ended().is_none()).count();
        bench.say(format_args!("{left} are left"));
        ensure!(left > bench.cpus(), "the queue is empty");
        elsewhere += usize::from(fresh.cpu_number() != 0);
        // It runs after the chain's current invocation and due turns of FAIR; in the order
        // of arrival alone it would wait for seconds.
        bench.at_most("turnaround", fresh.turnaround(), ms(150))?;
    }
    // A kernel thread that preempts one sends it to the first free CPU.
    ensure!(elsewhere <= 3, "{elsewhere} of 10 ran on another CPU");
    drop((crowd, chain));
    scheduler.finish()
}

/// A CPU that a case takes offline. Dropping it brings the CPU online.
struct HotCpu(PathBuf);

impl HotCpu {
    /// Returns the last CPU.
    ///
    /// # Errors
    ///
    /// A [`Skip`]: there is no other CPU, or the kernel cannot take this one offline.
    fn last(bench: &Bench) -> Result<Self> {
        bench.needs_two_cpus()?;
        let last = bench.cpus() - 1;
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{last}/online"));
        ensure!(
            switch.exists(),
            Skip("this kernel cannot take a CPU offline")
        );
        Ok(Self(switch))
    }

    /// Switches the CPU and waits until the scheduler is loaded again.
    fn switch(&self, online: bool, scheduler: &mut Scheduler) -> Result<()> {
        let seq = enable_seq();
        let value = if online { "1" } else { "0" };
        fs::write(&self.0, value).with_context(|| format!("cannot write {}", self.0.display()))?;
        let loaded = wait_until(PATIENCE, || enable_seq() > seq && state() == "enabled");
        ensure!(loaded, "not loaded again: {}", scheduler.log());
        ensure!(scheduler.is_alive(), "the loader is gone");
        Ok(())
    }
}

impl Drop for HotCpu {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "1");
    }
}

fn restarts_on_cpu_hotplug(bench: &Bench) -> Result<()> {
    let cpu = HotCpu::last(bench)?;
    let mut scheduler = bench.load_sfs("--slice-us 10000")?;
    let tasks = bench.each_cpu(|_| {
        Process::spawn(|report| loop {
            report.burn(ms(15));
            sleep(ms(45));
        })
    })?;
    let server = Server::start(ms(3), Worker::Acceptor)?;
    for (online, cpus) in [(false, bench.cpus() - 1), (true, bench.cpus())] {
        cpu.switch(online, &mut scheduler)?;
        expect_warm(&scheduler, &server)?;
        let stats = scheduler.wait_for("the CPUs", |stats| stats.cpus == cpus as u64)?;
        let before: Vec<_> = tasks.iter().map(|task| task.cpu()).collect();
        let mut all = tasks.iter().zip(before);
        let run = all.all(|(task, used)| wait_until(PATIENCE, || task.cpu() > used));
        ensure!(run, "a task is lost");
        let mut fresh = Process::burner(ms(5))?;
        fresh.wait()?;
        bench.say(format_args!(
            "online {online}: {} CPUs, turnaround of a new process {:?}",
            stats.cpus,
            fresh.turnaround()
        ));
    }
    drop((tasks, server));
    scheduler.finish()
}

/// Expects that a server older than the scheduler is a function. The first of two requests
/// may begin unseen, as the server was in accept() when the scheduler was loaded.
fn expect_warm(scheduler: &Scheduler, server: &Server) -> Result<()> {
    let before = scheduler.stats()?.begun_by_accept;
    server.call()?;
    server.call()?;
    let accepted = scheduler.stats()?.begun_by_accept - before;
    ensure!(accepted >= 1, "a warm server is no longer a function");
    Ok(())
}

fn suspend_and_resume(bench: &Bench) -> Result<()> {
    const SLEEP_STATE: &str = "/sys/power/state";
    const ALARM: &str = "/sys/class/rtc/rtc0/wakealarm";
    // Meanwhile the other CPUs go offline, for which the kernel restarts a scheduler.
    bench.needs_two_cpus()?;
    let states = fs::read_to_string(SLEEP_STATE).unwrap_or_default();
    ensure!(states.contains("mem"), Skip("this machine cannot sleep"));
    let mut scheduler = bench.load_sfs("--slice-us 10000")?;
    let tasks = bench.each_cpu(|_| Process::hog())?;
    let mut fresh = Process::burner(ms(5))?;
    fresh.wait()?;
    let (seq, before) = (enable_seq(), now());
    fs::write(ALARM, "+3").context("there is no clock to wake the machine up")?;
    fs::write(SLEEP_STATE, "mem").context("the machine does not sleep")?;
    let used: Vec<_> = tasks.iter().map(|task| task.cpu()).collect();
    bench.say(format_args!(
        "CLOCK_MONOTONIC advanced by {:?}",
        since(before)
    ));

    let loaded = wait_until(6 * PATIENCE, || enable_seq() > seq && state() == "enabled");
    ensure!(loaded, "not loaded again: {}", scheduler.log());
    ensure!(scheduler.is_alive(), "the loader is gone");
    let cpus = bench.cpus() as u64;
    scheduler.wait_for("the CPUs", |stats| stats.cpus == cpus)?;
    let mut all = tasks.iter().zip(used);
    let run = all.all(|(task, used)| wait_until(PATIENCE, || task.cpu() > used));
    ensure!(run, "a task is lost");
    Process::burner(ms(5))?.wait()?;
    drop(tasks);
    scheduler.finish()
}

/// Saturates all CPUs except `cpu` with functions, under each policy, and expects that no
/// function runs there and that the process made by `start` is not disturbed there.
fn is_left_alone(bench: &Bench, cpu: usize, start: impl Fn() -> Result<Process>) -> Result<()> {
    for policy in ["sfs", "learned", "fair"] {
        let scheduler = bench.load(&format!("--policy {policy}"))?;
        let rest = (0..3 * bench.cpus()).map(|_| Process::hog());
        let rest = rest.collect::<Result<Vec<_>>>()?;
        let isolated = start()?;
        sleep(ms(300));
        let before = isolated.cpu();
        isolated.forget_gap();
        for _ in 0..100 {
            sleep(ms(10));
            let intruder = rest.iter().find(|process| process.cpu_number() == cpu);
            ensure!(intruder.is_none(), "a function ran on the isolated CPU");
        }
        let used = isolated.cpu() - before;
        bench.say(format_args!("{policy}: {used:?} of CPU time in a second"));
        bench.at_most("without its CPU", isolated.longest_gap(), ms(4))?;
        ensure!(used >= ms(990), "it got {used:?} in a second");
        scheduler.finish()?;
    }
    Ok(())
}

fn isolated_cpu_is_left_alone(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    enable_cpuset_controller()?;
    let last = bench.cpus() - 1;
    let group = Cgroup::new("isolated")?;
    group.set("cpuset.cpus", &last.to_string())?;
    group.set("cpuset.cpus.partition", "isolated")?;
    is_left_alone(bench, last, || {
        Process::spawn_in(&group, |report| report.burn(PATIENCE))
    })
}

fn isolcpus_are_refused_with_a_reason(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated")?;
    ensure!(!isolated.trim().is_empty(), "no CPU is isolated");
    let output = Command::new(bench.program()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    bench.say(said.trim());
    ensure!(
        output.status.code() == Some(1) && said.contains("isolcpus=1"),
        "{}",
        output.status
    );
    ensure!(state() == "disabled", "a scheduler is loaded");
    let nohz_full = fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    ensure!(
        nohz_full.trim() != "1" || said.contains("nohz_full=1 has no effect"),
        "the warning about nohz_full is missing"
    );
    // Whether the kernel's type information has the deadline server for sched_ext.
    let types = fs::read("/sys/kernel/btf/vmlinux")?;
    let has_server = types.windows(11).any(|name| name == b"ext_server\0");
    ensure!(
        has_server != said.contains("real-time work on every CPU"),
        "a kernel with a server for sched_ext: {has_server}"
    );
    Ok(())
}
