//! Very many tasks at once, with kernel threads, a shell and real-time tasks
//! beside them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::{
    burn, ms, now, since, sleep, sleep_until, wait_for_grace_period, PATIENCE,
};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::Scheduler;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "ten_thousand_sleepers_wake_at_once",
        about: "10,000 threads wake up on one event, run and end, and so does a short process beside them",
        run: ten_thousand_sleepers_wake_at_once,
    },
    Case {
        name: "fork_bomb_inside_a_pids_limit",
        about:
            "other processes start and end beside a fork bomb of up to 400 processes",
        run: fork_bomb_inside_a_pids_limit,
    },
    Case {
        name: "kernel_threads_keep_their_latency",
        about: "RCU's grace periods take at most 200 ms under a saturated FILTER",
        run: kernel_threads_keep_their_latency,
    },
    Case {
        name: "workqueues_keep_their_latency",
        about: "input through a pseudoterminal, and so a kernel worker, takes at most 20 ms under a saturated FILTER",
        run: workqueues_keep_their_latency,
    },
    Case {
        name: "shell_wakes_up_under_saturated_filter",
        about: "a process older than the scheduler that wakes up every 100 ms waits at most 5 ms",
        run: shell_wakes_up_under_saturated_filter,
    },
    Case {
        name: "clock_steps_change_nothing",
        about: "jumps of the wall clock by an hour, forth and back, do not affect scheduling",
        run: clock_steps_change_nothing,
    },
    Case {
        name: "deadline_task_takes_its_share",
        about: "a SCHED_DEADLINE task gets 5 of every 20 ms beside FILTER work, which continues",
        run: deadline_task_takes_its_share,
    },
    Case {
        name: "statistics_come_beside_deadline_task",
        about: "200 requests for statistics are answered while FILTER and a SCHED_DEADLINE task have all CPUs",
        run: statistics_come_beside_deadline_task,
    },
    Case {
        name: "stopped_loader_stalls_nobody",
        about: "short processes end while the loader is stopped for 3 s under load, and it continues afterwards",
        run: stopped_loader_stalls_nobody,
    },
];

/// Starts a process with `count` threads that wait for one event, burn `demand`
/// and end. Its value is 1 once all threads exist, and finally the time they
/// took in ms, at least 2.
fn sleepers(count: usize, demand: Duration) -> Result<Process> {
    Process::spawn(move |report| {
        let gate = std::sync::Arc::new(std::sync::Barrier::new(count + 1));
        let mut threads = Vec::new();
        for _ in 0..count {
            let gate = std::sync::Arc::clone(&gate);
            let small = std::thread::Builder::new().stack_size(16 * 1024);
            let thread = small.spawn(move || {
                gate.wait();
                burn(demand);
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => panic!("only {} threads: {error}", threads.len()),
            }
        }
        report.value.store(1, Relaxed);
        gate.wait();
        let woken = now();
        for thread in threads {
            let _ = thread.join();
        }
        let took = u64::try_from(since(woken).as_millis()).unwrap_or(u64::MAX);
        report.value.store(took.max(2), Relaxed);
    })
}

fn ten_thousand_sleepers_wake_at_once(bench: &Bench) -> Result<()> {
    const THREADS: usize = 10_000;
    fs::write("/proc/sys/kernel/threads-max", "40000").context("cannot allow so many threads")?;
    let scheduler = bench.load_sfs("--slice-us 50000")?;
    let mut crowd = sleepers(THREADS, Duration::from_micros(100))?;
    let patience = 4 * PATIENCE;
    let there = sfs_testbed::clock::wait_until(patience, || {
        crowd.value.load(Relaxed) > 0 || crowd.has_ended()
    });
    ensure!(
        there && !crowd.has_ended(),
        "the threads cannot all be started"
    );
    let mut short = Process::burner(ms(5))?;
    short.wait()?;
    bench.say(format_args!(
        "a short process took {:?}",
        short.turnaround()
    ));
    let ended = sfs_testbed::clock::wait_until(patience, || crowd.has_ended());
    ensure!(ended, "the threads do not end");
    crowd.wait()?;
    bench.say(format_args!(
        "{THREADS} threads of 0.1 ms took {} ms",
        crowd.value.load(Relaxed)
    ));
    scheduler.finish()
}

fn fork_bomb_inside_a_pids_limit(bench: &Bench) -> Result<()> {
    let root = "/sys/fs/cgroup/cgroup.subtree_control";
    fs::write(root, "+pids").context("cannot limit the number of processes")?;
    beside_fork_bomb(bench, "--policy sfs", 4, ms(5000))?;
    // Bomb and short processes run one program, and so are one function to the default policy: it
    // expects all of them to be long (docs/reliability.md, "Limits of the policy").
    beside_fork_bomb(bench, "", 1, ms(20_000))
}

/// Short processes, one after another, beside a fork bomb: none may take longer than `limit`.
fn beside_fork_bomb(bench: &Bench, options: &str, count: u32, limit: Duration) -> Result<()> {
    let box_ = Cgroup::new("bomb")?;
    box_.set("pids.max", "400")?;
    let scheduler = bench.load(options)?;
    // Forked into its group: a move takes a grace period of RCU, and a bomb
    // faster than that takes the machine down.
    let bomb = Process::spawn_in(&box_, |_| loop {
        // SAFETY: the process has a single thread.
        let _ = unsafe { nix::unistd::fork() };
    })?;
    sleep(ms(1000));
    let longest = longest_of(count, ms(2));
    // Before anything can fail: outside its group the bomb has no limit.
    box_.set("cgroup.kill", "1")?;
    bench.at_most("longest of short processes", longest?, limit)?;
    drop(bomb);
    scheduler.finish()
}

/// Returns the longest turnaround of `count` processes that need `demand` each.
fn longest_of(count: u32, demand: Duration) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let mut short = Process::burner(demand)?;
        short.wait()?;
        longest = longest.max(short.turnaround());
        sleep(ms(50));
    }
    Ok(longest)
}

fn kernel_threads_keep_their_latency(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(200));
    let mut longest = Duration::ZERO;
    // The caller is a real-time process, so that only RCU's threads are measured.
    sfs_testbed::process::as_real_time(|| {
        for _ in 0..20 {
            let start = now();
            wait_for_grace_period()?;
            longest = longest.max(since(start));
            sleep(ms(20));
        }
        Ok(())
    })?;
    bench.at_most("longest grace period of 20", longest, ms(200))?;
    drop(chains);
    scheduler.finish()
}

fn workqueues_keep_their_latency(bench: &Bench) -> Result<()> {
    let (mut master, mut slave) = pseudoterminal()?;
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(200));
    let mut longest = Duration::ZERO;
    // The caller is a real-time process, so that only the worker is measured.
    sfs_testbed::process::as_real_time(|| {
        for _ in 0..100 {
            let start = now();
            master.write_all(b"x\n")?;
            slave.read_exact(&mut [0; 2])?;
            longest = longest.max(since(start));
            sleep(ms(7));
        }
        Ok(())
    })?;
    bench.at_most("the longest transfer of 100", longest, ms(20))?;
    drop(chains);
    scheduler.finish()
}

/// Opens a pseudoterminal: bytes written to the first file are read from the second.
fn pseudoterminal() -> Result<(File, File)> {
    fs::create_dir_all("/dev/pts")?;
    let mounted = fs::metadata("/dev/pts/ptmx").is_ok();
    if !mounted {
        let (what, place) = (c"devpts".as_ptr(), c"/dev/pts".as_ptr());
        // SAFETY: the strings are static.
        let done = unsafe { libc::mount(what, place, what, 0, std::ptr::null()) };
        ensure!(
            done == 0,
            "cannot mount devpts: {}",
            std::io::Error::last_os_error()
        );
    }
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: writes the two numbers; null requests nothing else.
    let done = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            none,
            none.cast(),
            none.cast(),
        )
    };
    ensure!(
        done == 0,
        "no pseudoterminal: {}",
        std::io::Error::last_os_error()
    );
    // SAFETY: both are open, and nothing else owns them.
    Ok(unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) })
}

fn shell_wakes_up_under_saturated_filter(bench: &Bench) -> Result<()> {
    // Forked before the scheduler is loaded, so it runs in FAIR.
    let shell = Process::spawn(|report| {
        let mut due = now();
        while !report.is_stopped() {
            due += ms(100);
            sleep_until(due);
            let late = u64::try_from(since(due).as_micros()).unwrap_or(u64::MAX);
            report.value.fetch_max(late, Relaxed);
            burn(ms(1));
            due = due.max(now());
        }
    })?;
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload --fair-max-wait-ms 100")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(300));
    shell.value.store(0, Relaxed);
    sleep(ms(3000));
    let longest = Duration::from_micros(shell.value.load(Relaxed));
    bench.at_most("longest wait of 30 wake-ups", longest, ms(5))?;
    drop((shell, chains));
    scheduler.finish()
}

fn clock_steps_change_nothing(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    for seconds in [3600, -7200, 3600] {
        step_clock(seconds)?;
        let mut short = Process::burner(ms(10))?;
        short.wait()?;
        bench.at_most("turnaround", short.turnaround(), ms(40))?;
    }
    let before: Vec<Duration> = hogs.iter().map(|one| one.cpu()).collect();
    sleep(ms(300));
    let go_on = hogs.iter().zip(before).all(|(one, cpu)| one.cpu() > cpu);
    ensure!(go_on, "a hog no longer runs");
    drop(hogs);
    scheduler.finish()
}

fn step_clock(seconds: i64) -> Result<()> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives both calls.
    let done = unsafe {
        libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time);
        time.tv_sec += seconds;
        libc::clock_settime(libc::CLOCK_REALTIME, &raw const time)
    };
    ensure!(done == 0, "cannot set the clock");
    Ok(())
}

fn deadline_task_takes_its_share(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    sleep(ms(100));
    let deadline = deadline_hog()?;
    sleep(ms(500));
    let before = deadline.cpu();
    deadline.forget_gap();
    sleep(ms(1000));
    let used = deadline.cpu() - before;
    bench.say(format_args!(
        "{used:?} in 1 s, longest gap {:?}",
        deadline.longest_gap()
    ));
    ensure!((ms(200)..=ms(300)).contains(&used), "not 5 of 20 ms");
    let arrivals = scheduler.stats()?.arrivals;
    scheduler.wait_for("FILTER to continue", |stats| stats.arrivals > arrivals + 20)?;
    drop((deadline, chains));
    scheduler.finish()
}

/// A request passes from thread to thread of the loader. Sooner or later one of
/// these is on a CPU that the deadline task takes. It must not be lost, or the
/// reader would wait forever.
fn statistics_come_beside_deadline_task(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload")?;
    let chains = bench.saturate_filter()?;
    let deadline = deadline_hog()?;
    let (mut longest, mut total) = (ms(0), ms(0));
    for _ in 0..200 {
        let start = now();
        scheduler.stats()?;
        longest = longest.max(since(start));
        total += since(start);
        sleep(ms(3));
    }
    bench.at_most("an answer of 200, on average", total / 200, ms(10))?;
    // Several waits in FAIR of 50 ms each, after more than a short turn: the
    // server spins before it sleeps, which is expensive on the emulator.
    bench.at_most("the longest", longest, ms(1000))?;
    drop((deadline, chains));
    scheduler.finish()
}

/// Starts a process that gets 5 ms of CPU time in every 20 ms, and uses all of it.
fn deadline_hog() -> Result<Process> {
    Process::spawn(|report| {
        if let Err(error) = become_deadline(ms(5), ms(20)) {
            panic!("{error:#}");
        }
        report.burn(Duration::MAX);
    })
}

/// Gives the caller `runtime` in every `period` (sched_setattr(2)).
fn become_deadline(runtime: Duration, period: Duration) -> Result<()> {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SCHED_DEADLINE: u32 = 6;
    let ns = |duration: Duration| u64::try_from(duration.as_nanos());
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>())?,
        policy: SCHED_DEADLINE,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: ns(runtime)?,
        deadline: ns(period)?,
        period: ns(period)?,
    };
    // SAFETY: `attributes` is as long as it says, and outlives the call.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    ensure!(
        done == 0,
        "no SCHED_DEADLINE: {}",
        std::io::Error::last_os_error()
    );
    Ok(())
}

fn stopped_loader_stalls_nobody(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    scheduler.signal(Signal::SIGSTOP)?;
    let end = now() + ms(3000);
    let mut longest = Duration::ZERO;
    while now() < end {
        let mut short = Process::burner(ms(10))?;
        short.wait()?;
        longest = longest.max(short.turnaround());
        sleep(ms(20));
    }
    scheduler.signal(Signal::SIGCONT)?;
    bench.at_most("longest of the short processes", longest, ms(60))?;
    drop(hogs);
    expect_statistics(&scheduler)?;
    scheduler.finish()
}

fn expect_statistics(scheduler: &Scheduler) -> Result<()> {
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals > 0, "{stats:?}");
    Ok(())
}
