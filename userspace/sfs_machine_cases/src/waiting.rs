//! No CPU idles while a task waits, and no task waits too long.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{
    ms, now, since, sleep, sleep_until, wait_for_grace_period, wait_until, PATIENCE,
};
use sfs_testbed::process::{
    as_real_time, chain_on, confine, cpu_of, fork_every, kernel_thread, pin_self, Process,
};
use sfs_testbed::skip::Skip;

/// Number of times that a process is displaced.
const CHASES: u32 = 1000;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "lone_yielder_keeps_its_cpu",
        about: "a process that only yields has a CPU to itself on an idle machine",
        run: lone_yielder_keeps_its_cpu,
    },
    Case {
        name: "free_beside_confined",
        about: "a hog that may run anywhere has a CPU to itself beside four hogs confined to two CPUs",
        run: free_beside_confined,
    },
    Case {
        name: "old_sleeper_wakes_beside_hog",
        about: "a hog that ran alone for 3 s and a process that wakes up on its CPU take turns at once",
        run: old_sleeper_wakes_beside_hog,
    },
    Case {
        name: "displaced_by_real_time_goes_on",
        about: "a process whose CPU a real-time task takes continues on another CPU at once",
        run: displaced_by_real_time_goes_on,
    },
    Case {
        name: "chased_by_real_time_goes_on",
        about: "a process that a real-time task follows from CPU to CPU, a thousand times, continues elsewhere each time",
        run: chased_by_real_time_goes_on,
    },
    Case {
        name: "kernel_threads_avoid_a_real_time_cpu",
        about: "no kernel thread waits on a CPU that was idle when a real-time task took it",
        run: kernel_threads_avoid_a_real_time_cpu,
    },
    Case {
        name: "interrupted_goes_on_elsewhere",
        about: "a function displaced by a daemon that is pinned to its CPU continues on an idle CPU",
        run: interrupted_goes_on_elsewhere,
    },
    Case {
        name: "quota_does_not_depend_on_ntp",
        about: "clocks that differ by 2 s through NTP do not freeze a group with a quota",
        run: quota_does_not_depend_on_ntp,
    },
    Case {
        name: "least_weight_waits_for_no_watchdog",
        about:
            "11 hogs in a group of weight 1 all make progress beside 28 others under a saturated FILTER",
        run: least_weight_waits_for_no_watchdog,
    },
];

/// Expects that `process` gets nearly all of a CPU for a second.
fn expect_a_cpu(bench: &Bench, what: &str, process: &Process) -> Result<()> {
    let before = process.cpu();
    process.forget_gap();
    sleep(ms(1000));
    let used = process.cpu() - before;
    bench.say(format_args!(
        "{what}: {used:?} of CPU time in 1 s, longest gap {:?}",
        process.longest_gap()
    ));
    ensure!(used >= ms(950), "{what} got {used:?} in a second");
    Ok(())
}

fn lone_yielder_keeps_its_cpu(bench: &Bench) -> Result<()> {
    for policy in ["fair", "sfs", "learned"] {
        let scheduler = bench.load(&format!("--policy {policy}"))?;
        if policy == "learned" {
            fork_every(ms(2), 150)?;
            scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
        }
        let yielder = Process::spawn(|report| loop {
            report.burn(Duration::from_micros(10));
            std::thread::yield_now();
        })?;
        sleep(ms(300));
        expect_a_cpu(bench, policy, &yielder)?;
        scheduler.finish()?;
    }
    Ok(())
}

fn free_beside_confined(bench: &Bench) -> Result<()> {
    ensure!(bench.cpus() > 2, Skip("it takes three CPUs"));
    let scheduler = bench.load("--policy fair")?;
    let hogs = (0..4).map(|_| Process::hog()).collect::<Result<Vec<_>>>()?;
    for hog in &hogs {
        confine(hog.pid(), &[0, 1])?;
    }
    sleep(ms(500));
    let free = Process::hog()?;
    sleep(ms(500));
    for _ in 0..3 {
        expect_a_cpu(bench, "the free hog", &free)?;
    }
    scheduler.finish()
}

/// Under each policy a real-time task takes the CPU of the only process, 10 times for 100 ms.
fn displaced_by_real_time_goes_on(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    for policy in ["sfs", "fair", "learned"] {
        let scheduler = bench.load(&format!("--policy {policy} --slice-us 2000000"))?;
        let mut displaced = Process::burner(ms(1500))?;
        sleep(ms(100));
        for _ in 0..10 {
            let cpu = cpu_of(displaced.pid())?;
            let mut intruder = Process::spawn(move |report| {
                let _ = as_real_time(|| {
                    pin_self(cpu);
                    report.burn(ms(100));
                    Ok(())
                });
            })?;
            intruder.wait()?;
        }
        let gap = displaced.longest_gap();
        displaced.wait()?;
        bench.at_most(&format!("{policy}: the longest without a CPU"), gap, ms(10))?;
        scheduler.finish()?;
    }
    Ok(())
}

/// A real-time task follows a process from CPU to CPU, and keeps each until the
/// process continues elsewhere. The CPU that queues the displaced process then
/// runs real-time work without a tick, and all others idle: only the guard's
/// timer, once a second, would find a process whose kick was lost.
fn chased_by_real_time_goes_on(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load("--slice-us 2000000")?;
    let chased = Process::hog()?;
    sleep(ms(100));
    let mut intruder = Process::spawn(|report| {
        let _ = as_real_time(|| {
            for _ in 0..CHASES {
                pin_self(chased.cpu_number());
                let (start, used) = (now(), chased.cpu());
                while chased.cpu() == used && since(start) < ms(100) {}
                let took = u64::try_from(since(start).as_nanos())?;
                report.value.fetch_max(took, Relaxed);
                sleep(Duration::from_micros(200));
            }
            Ok(())
        });
    })?;
    intruder.wait()?;
    let longest = Duration::from_nanos(intruder.value.load(Relaxed));
    ensure!(!longest.is_zero(), "it was never displaced");
    bench.at_most("the longest without a CPU", longest, ms(10))?;
    scheduler.finish()
}

/// All CPUs but the first are busy with functions, so RCU's thread sleeps and
/// wakes up on the first. The kernel tells a scheduler about a real-time task
/// that displaces one of its tasks, but not about one that takes an idle CPU.
fn kernel_threads_avoid_a_real_time_cpu(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load("--slice-us 60000 --no-overload")?;
    let chains: Vec<_> = (1..bench.cpus())
        .map(|cpu| chain_on(cpu, ms(40)))
        .collect::<Result<_>>()?;
    let rcu = kernel_thread("rcu_preempt").or_else(|_| kernel_thread("rcu_sched"))?;
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let there = wait_until(PATIENCE, || {
            wait_for_grace_period().is_ok() && cpu_of(rcu).is_ok_and(|cpu| cpu == 0)
        });
        ensure!(there, "RCU's thread does not move to the idle CPU");
        let mut intruder = Process::spawn(|report| {
            let _ = as_real_time(|| {
                pin_self(0);
                report.burn(ms(300));
                Ok(())
            });
        })?;
        ensure!(
            wait_until(PATIENCE, || !intruder.cpu().is_zero()),
            "the real-time task does not run"
        );
        let start = now();
        wait_for_grace_period()?;
        longest = longest.max(since(start));
        intruder.wait()?;
    }
    drop(chains);
    bench.at_most("the longest grace period of RCU", longest, ms(100))?;
    scheduler.finish()
}

/// A daemon pinned to a CPU works ten times for 10 ms. Before each time a function, which may
/// use all CPUs, is moved to that CPU.
fn interrupted_goes_on_elsewhere(bench: &Bench) -> Result<()> {
    const PAUSE: Duration = ms(80);
    bench.needs_two_cpus()?;
    enable_cpu_controller()?;
    let sandbox = Cgroup::new("functions/f")?;
    let all: Vec<usize> = (0..bench.cpus()).collect();
    for policy in ["sfs", "learned"] {
        let options = format!("--policy {policy} --cgroup functions/* --slice-us 3000000");
        let scheduler = bench.load(&options)?;
        let function = Process::spawn_in(&sandbox, |report| report.burn(Duration::MAX))?;
        let start = now() + PAUSE;
        let daemon = Process::spawn(move |report| {
            pin_self(1);
            for burst in 1..=10 {
                sleep_until(start + burst * PAUSE);
                report.burn(ms(10));
            }
        })?;
        for burst in 1..=10 {
            sleep_until(start + burst * PAUSE - ms(5));
            confine(function.pid(), &[1])?;
            confine(function.pid(), &all)?;
            if burst == 1 {
                function.forget_gap();
            }
        }
        sleep_until(start + 11 * PAUSE);
        let gap = function.longest_gap();
        drop((daemon, function));
        bench.at_most(&format!("{policy}: the longest without a CPU"), gap, ms(4))?;
        scheduler.finish()?;
    }
    Ok(())
}

fn old_sleeper_wakes_beside_hog(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy fair")?;
    let start = now();
    let sleeper = Process::spawn(move |report| {
        pin_self(0);
        sleep_until(start + ms(3000));
        report.burn(ms(2000));
    })?;
    let hog = Process::spawn(|report| {
        pin_self(0);
        report.burn(Duration::MAX);
    })?;
    sleep(ms(2500));
    hog.forget_gap();
    sleep(ms(2000));
    let (waited, woken) = (hog.longest_gap(), sleeper.longest_gap());
    bench.say(format_args!(
        "longest gap of the hog {waited:?}, of the sleeper {woken:?}"
    ));
    // A turn of the other, in ticks of 4 ms, and its saved-up time at the wake-up.
    bench.at_most("the hog waited", waited, ms(60))?;
    bench.at_most("the sleeper waited", woken, ms(60))?;
    scheduler.finish()
}

/// Slows the clock down by a tenth, as NTP does. Dropping it restores the rate.
struct SlowClock;

impl SlowClock {
    const TICK_US: i64 = 10_000;

    fn start() -> Result<Self> {
        Self::set_tick(Self::TICK_US * 9 / 10)?;
        Ok(Self)
    }

    fn set_tick(tick: i64) -> Result<()> {
        // SAFETY: zeroes are a valid value for all of its fields.
        let mut change: libc::timex = unsafe { std::mem::zeroed() };
        change.modes = libc::ADJ_TICK;
        change.tick = tick;
        // SAFETY: `change` outlives the call.
        let done = unsafe { libc::adjtimex(&raw mut change) };
        ensure!(done >= 0, "cannot change the rate of the clock");
        Ok(())
    }
}

impl Drop for SlowClock {
    fn drop(&mut self) {
        let _ = Self::set_tick(Self::TICK_US);
    }
}

fn quota_does_not_depend_on_ntp(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load("")?;
    let slow = SlowClock::start()?;
    let raw = || {
        let time = ClockId::CLOCK_MONOTONIC_RAW.now().context("no raw clock")?;
        Ok::<_, anyhow::Error>(Duration::from_nanos(time.num_nanoseconds().unsigned_abs()))
    };
    let apart = raw()?.saturating_sub(now());
    sleep(ms(18_000));
    drop(slow);
    let apart = raw()?.saturating_sub(now()).saturating_sub(apart);
    bench.say(format_args!("the clocks differ by {apart:?}"));
    ensure!(apart > ms(1500), "the clocks do not differ enough");

    let group = Cgroup::new("half")?;
    ensure!(
        group.set("cpu.max", "50000 100000").is_ok(),
        Skip("the kernel has no cpu.max")
    );
    let hog = Process::spawn_in(&group, |report| report.burn(Duration::MAX))?;
    sleep(ms(1000));
    let before = hog.cpu();
    hog.forget_gap();
    sleep(ms(4000));
    let used = hog.cpu() - before;
    bench.say(format_args!("{used:?} of CPU time in 4 s"));
    bench.at_most("frozen for", hog.longest_gap(), ms(120))?;
    ensure!(
        (ms(1900)..=ms(2100)).contains(&used),
        "a quota of half a CPU gave {used:?} in 4 s"
    );
    scheduler.finish()
}

fn least_weight_waits_for_no_watchdog(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load("--slice-us 20000 --no-overload")?;
    let light = Cgroup::new("light")?;
    light.set("cpu.weight", "1")?;
    let hog = |group: Option<&Cgroup>| {
        let work = |report: &sfs_testbed::report::Report| report.burn(Duration::MAX);
        group.map_or_else(
            || Process::spawn(work),
            |group| Process::spawn_in(group, work),
        )
    };
    let lights = (0..11)
        .map(|_| hog(Some(&light)))
        .collect::<Result<Vec<_>>>()?;
    let others = bench.each_cpu(|_| (0..7).map(|_| hog(None)).collect::<Result<Vec<_>>>())?;
    let hogs = (lights.len() + others.len() * 7) as u64;
    scheduler.wait_for("all hogs' demotion", |stats| stats.demotions >= hogs)?;
    let filter = bench.saturate_filter()?;
    sleep(ms(1000));
    lights.iter().for_each(|light| light.forget_gap());
    let before: Vec<_> = lights.iter().map(|light| light.cpu()).collect();
    sleep(ms(12_000));
    let idle = lights
        .iter()
        .zip(&before)
        .filter(|(light, before)| light.cpu() == **before);
    let idle = idle.count();
    let longest = lights.iter().map(|light| light.longest_gap()).max();
    let guarded = scheduler.stats()?.guarded;
    bench.say(format_args!(
        "{idle} of 11 did not run in 12 s; longest gap {longest:?}; {guarded} turns given by the guard"
    ));
    ensure!(idle == 0, "{idle} of 11 hogs did not run in 12 s");
    // Half of the guard's limit, up to a second until its next check, and a
    // round of the tasks that are due together.
    bench.at_most(
        "a hog was without a CPU",
        longest.unwrap_or_default(),
        ms(12_000),
    )?;
    drop((filter, others, lights));
    scheduler.finish()
}
