//! Credit: which tasks get it, keep it and lose it.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::{ensure, Result};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{burn, ms, sleep, wait_until, PATIENCE};
use sfs_testbed::process::Process;
use sfs_testbed::trace::{self, Trace};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "short_ends_within_credit",
        about: "a short process beside hogs ends as on an idle machine, without a switch",
        run: short_ends_within_credit,
    },
    Case {
        name: "long_is_demoted_once",
        about: "a process that needs 5 x S is demoted once and ends",
        run: long_is_demoted_once,
    },
    Case {
        name: "sleeper_keeps_its_credit",
        about: "a process that blocks 6 times and needs less than S is not demoted",
        run: sleeper_keeps_its_credit,
    },
    Case {
        name: "sleeper_over_s_is_demoted_once",
        about: "CPU time adds up across sleeps",
        run: sleeper_over_s_is_demoted_once,
    },
    Case {
        name: "threads_share_one_credit",
        about: "threads that burn in parallel are demoted once, after S of CPU time in total",
        run: threads_share_one_credit,
    },
    Case {
        name: "threads_below_s_keep_the_credit",
        about: "threads that together need less than S are not demoted",
        run: threads_below_s_keep_the_credit,
    },
    Case {
        name: "process_from_before_load_runs_in_fair",
        about: "a process older than the scheduler and its new threads have no credit, its new children do",
        run: process_from_before_load_runs_in_fair,
    },
];

fn short_ends_within_credit(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 50000 --no-overload")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    let _trace = Trace::start(&["sched/sched_switch"])?;
    let mut shorts = Vec::new();
    for _ in 0..10 {
        let mut short = Process::burner(ms(10))?;
        // This process is older than the scheduler and is treated as a daemon:
        // each of its checks of the short process would preempt a running task.
        sleep(ms(30));
        short.wait()?;
        shorts.push(short);
    }
    bench.expect_not_preempted(&trace::text()?, &shorts)?;
    for short in &shorts {
        bench.say(format_args!(
            "turnaround {:?}, {} switches to kernel threads",
            short.turnaround(),
            short.involuntary()
        ));
        ensure!(short.turnaround() <= ms(20), "it took too long");
    }
    let after = scheduler.stats()?;
    let in_credit = after.completions_in_credit - before.completions_in_credit;
    ensure!(in_credit == 10, "{in_credit} completions in credit, not 10");
    ensure!(after.demotions == before.demotions, "one was demoted");
    drop(hogs);
    scheduler.finish()
}

fn long_is_demoted_once(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let mut long = Process::burner(ms(100))?;
    long.wait()?;
    let stats = scheduler.stats()?;
    ensure!(long.cpu() >= ms(100), "it got only {:?}", long.cpu());
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    ensure!(stats.completions == 1, "{} completions", stats.completions);
    ensure!(
        stats.completions_in_credit == 0,
        "it is counted as ended within its credit"
    );
    scheduler.finish()
}

/// Starts a process that burns 5 ms and sleeps 5 ms, `turns` times.
fn sleeper(turns: u32) -> Result<Process> {
    Process::spawn(move |_| {
        for _ in 0..turns {
            burn(ms(5));
            sleep(ms(5));
        }
    })
}

fn sleeper_keeps_its_credit(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 50000")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    let mut process = sleeper(6)?;
    process.wait()?;
    let after = scheduler.stats()?;
    let returns = after.io_returns - before.io_returns;
    bench.say(format_args!(
        "{returns} returns from I/O, turnaround {:?}",
        process.turnaround()
    ));
    ensure!(returns >= 6, "{returns} returns from I/O, not 6");
    ensure!(after.demotions == before.demotions, "it was demoted");
    let in_credit = after.completions_in_credit - before.completions_in_credit;
    ensure!(in_credit == 1, "it did not end within its credit");
    bench.at_most("turnaround", process.turnaround(), ms(6 * 10 + 20))?;
    drop(hogs);
    scheduler.finish()
}

fn sleeper_over_s_is_demoted_once(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 50000")?;
    let mut process = sleeper(13)?;
    process.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    ensure!(
        (9..=11).contains(&stats.io_returns),
        "{} returns from I/O with credit, not about 10",
        stats.io_returns
    );
    scheduler.finish()
}

/// Starts a process with `count` threads, each of which burns `each`.
fn threads(count: usize, each: std::time::Duration) -> Result<Process> {
    Process::spawn(move |_| {
        let threads: Vec<_> = (0..count)
            .map(|_| thread::spawn(move || burn(each)))
            .collect();
        for thread in threads {
            thread.join().unwrap_or_default();
        }
    })
}

fn threads_share_one_credit(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 60000 --debug")?;
    trace::clear()?;
    threads(bench.cpus(), ms(60))?.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    ensure!(stats.arrivals == 1, "{} arrivals", stats.arrivals);

    let text = trace::text()?;
    let used: u64 = text
        .split_once("sfs: demoted after ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    // Each CPU charges at its tick, every 4 ms.
    let limit = 60_000 + 4_000 * (bench.cpus() as u64 + 1);
    bench.say(format_args!(
        "demoted after {used} us in total, S = 60000 us"
    ));
    ensure!((60_000..=limit).contains(&used), "not after S in total");
    scheduler.finish()
}

fn threads_below_s_keep_the_credit(bench: &Bench) -> Result<()> {
    // The start of a thread costs CPU time too.
    let number = bench.cpus().min(8);
    let scheduler = bench.load_sfs("--slice-us 60000")?;
    threads(number, ms(40) / number as u32)?.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 0, "it was demoted");
    ensure!(stats.completions_in_credit == 1, "{stats:?}");
    ensure!(
        stats.filter_starts > number as u64,
        "the threads did not run in FILTER: {} starts",
        stats.filter_starts
    );
    scheduler.finish()
}

fn process_from_before_load_runs_in_fair(bench: &Bench) -> Result<()> {
    let mut old = Process::spawn(|report| {
        wait_until(PATIENCE, || report.value.load(Relaxed) == 1);
        burn(ms(30));
        let thread = thread::spawn(|| burn(ms(30)));
        thread.join().unwrap_or_default();
        report.value.store(2, Relaxed);
        wait_until(PATIENCE, || report.value.load(Relaxed) == 3);
        Process::burner(ms(30))
            .and_then(|mut child| child.wait())
            .unwrap_or_else(|error| panic!("{error:#}"));
    })?;
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    old.value.store(1, Relaxed);
    ensure!(
        wait_until(PATIENCE, || old.value.load(Relaxed) == 2),
        "it does not run"
    );
    let stats = scheduler.stats()?;
    ensure!(
        (stats.arrivals, stats.demotions, stats.filter_starts) == (0, 0, 0),
        "it had credit: {stats:?}"
    );
    old.value.store(3, Relaxed);
    old.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 1, "{} arrivals", stats.arrivals);
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    ensure!(stats.completions == 1, "{} completions", stats.completions);
    scheduler.finish()
}
