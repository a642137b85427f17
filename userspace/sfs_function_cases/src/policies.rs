//! Other scheduling classes and policies, nice values, yields.

use std::time::Duration;

use anyhow::{ensure, Result};
use nix::unistd::Pid;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{burn, ms, sleep};
use sfs_testbed::process::{
    fork_burst, fork_together, pin_self, set_nice, set_policy, wait_for_all, Process, SCHED_EXT,
};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "resumes_after_real_time_task",
        about: "an invocation resumes after a SCHED_FIFO task took its CPU, and loses no credit",
        run: resumes_after_real_time_task,
    },
    Case {
        name: "yields_go_round",
        about: "processes that yield take turns, and all end",
        run: yields_go_round,
    },
    Case {
        name: "nice_changes_while_queued",
        about: "the nice values of queued processes change, and all end",
        run: nice_changes_while_queued,
    },
    Case {
        name: "policy_changes_while_running",
        about: "SCHED_OTHER to SCHED_FIFO and back: the same credit continues",
        run: policy_changes_while_running,
    },
    Case {
        name: "nice_values_share_fair",
        about: "nice 0 gets about three times as much of a CPU as nice 5",
        run: nice_values_share_fair,
    },
    Case {
        name: "partial_takes_sched_ext_only",
        about: "with --partial only tasks of policy SCHED_EXT are invocations",
        run: partial_takes_sched_ext_only,
    },
];

/// Sets the caller's policy, and panics if it cannot.
fn become_policy(policy: i32) {
    if let Err(error) = set_policy(Pid::from_raw(0), policy) {
        panic!("{error:#}");
    }
}

fn resumes_after_real_time_task(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load_sfs("--slice-us 80000")?;
    let mut invocation = Process::spawn(|report| {
        pin_self(1);
        report.burn(ms(60));
    })?;
    sleep(ms(20));
    let mut thief = Process::spawn(|_| {
        become_policy(libc::SCHED_FIFO);
        pin_self(1);
        burn(ms(60));
    })?;
    thief.wait()?;
    invocation.wait()?;
    bench.say(format_args!(
        "60 ms of work took {:?}, longest gap {:?}",
        invocation.turnaround(),
        invocation.longest_gap()
    ));
    ensure!(invocation.longest_gap() >= ms(50), "no task took its CPU");
    bench.at_most("turnaround", invocation.turnaround(), ms(135))?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 0, "demoted for time that it did not use");
    scheduler.finish()
}

fn yields_go_round(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 100000 --no-overload")?;
    let mut yielders = fork_together(2 * bench.cpus(), |_| {
        for _ in 0..100 {
            burn(Duration::from_micros(200));
            std::thread::yield_now();
        }
    })?;
    wait_for_all(&mut yielders)?;
    let stats = scheduler.stats()?;
    bench.say(format_args!("{} starts in FILTER", stats.filter_starts));
    // Each yield ahead of a queue lets another process start.
    ensure!(stats.filter_starts >= 100, "they did not take turns");
    ensure!(
        stats.completions_in_credit == yielders.len() as u64,
        "{stats:?}"
    );
    scheduler.finish()
}

fn nice_changes_while_queued(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 20000")?;
    let mut burst = fork_burst(4 * bench.cpus(), ms(40))?;
    for nice in [5, -5, 19, 0] {
        for process in &burst {
            set_nice(process.pid(), nice)?;
        }
        sleep(ms(10));
    }
    wait_for_all(&mut burst)?;
    let stats = scheduler.wait_for("FILTER mode", |stats| stats.mode == 0)?;
    ensure!(stats.completions == burst.len() as u64, "{stats:?}");
    // One or two may have waited for a lock of the kernel, for instance in a
    // page fault. All have had their nice value changed four times.
    ensure!(
        stats.io_returns <= 2,
        "{} returns from I/O: changes of the nice value count as such",
        stats.io_returns
    );
    scheduler.finish()
}

fn policy_changes_while_running(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 50000")?;
    let mut process = Process::spawn(|_| {
        for _ in 0..2 {
            burn(ms(10));
            become_policy(libc::SCHED_FIFO);
            burn(ms(10));
            become_policy(libc::SCHED_OTHER);
        }
        burn(ms(10));
    })?;
    process.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 1, "{} arrivals", stats.arrivals);
    ensure!(stats.completions == 1, "{} completions", stats.completions);
    // 30 ms as an invocation, 20 ms as a real-time task: less than S.
    ensure!(stats.demotions == 0, "demoted for time in another class");
    scheduler.finish()
}

fn nice_values_share_fair(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load_sfs("--slice-us 2000 --fair-slice-us 5000")?;
    let pinned_hog = || {
        Process::spawn(|report| {
            pin_self(1);
            report.burn(Duration::MAX);
        })
    };
    let hogs = [pinned_hog()?, pinned_hog()?];
    set_nice(hogs[1].pid(), 5)?;
    scheduler.wait_for("the hogs' demotion", |stats| stats.demotions >= 2)?;
    sleep(ms(100));
    let before = hogs.each_ref().map(|hog| hog.cpu());
    sleep(ms(1000));
    let got: Vec<Duration> = hogs
        .iter()
        .zip(before)
        .map(|(hog, used)| hog.cpu() - used)
        .collect();
    let ratio = got[0].as_secs_f64() / got[1].as_secs_f64();
    bench.say(format_args!("{got:?}: {ratio:.2} to 1"));
    ensure!((2.5..=3.6).contains(&ratio), "weights are 1024 to 335");
    drop(hogs);
    scheduler.finish()
}

fn partial_takes_sched_ext_only(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--partial --slice-us 10000")?;
    Process::burner(ms(30))?.wait()?;
    let stats = scheduler.stats()?;
    ensure!(
        (stats.arrivals, stats.demotions) == (0, 0),
        "a SCHED_OTHER process is an invocation: {stats:?}"
    );
    let mut ext = Process::spawn(|_| {
        become_policy(SCHED_EXT);
        burn(ms(30));
    })?;
    ext.wait()?;
    let stats = scheduler.stats()?;
    ensure!(stats.arrivals == 1, "{} arrivals", stats.arrivals);
    ensure!(stats.demotions == 1, "{} demotions", stats.demotions);
    ensure!(stats.completions == 1, "{} completions", stats.completions);
    scheduler.finish()
}
