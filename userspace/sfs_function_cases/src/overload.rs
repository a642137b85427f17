//! Overload: fair-only mode on and off, also without the loader.

use anyhow::{ensure, Result};
use nix::sys::signal::Signal;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::ms;
use sfs_testbed::process::{as_real_time, begin_together, wait_for_all, Process};
use sfs_testbed::scheduler::{state, Scheduler, Stats};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "overload_goes_fair_only_and_back",
        about:
            "a burst of long invocations switches fair-only mode on, and its end switches it off",
        run: overload_goes_fair_only_and_back,
    },
    Case {
        name: "no_overload_never_switches",
        about: "with --no-overload the same burst stays in FILTER",
        run: no_overload_never_switches,
    },
    Case {
        name: "kernel_half_relieves_without_loader",
        about: "while the loader is stopped, tasks that wait too long go to FAIR, and none stalls",
        run: kernel_half_relieves_without_loader,
    },
];

/// Makes a burst that is an overload at S = 10 ms; returns it with the statistics in
/// fair-only mode.
pub(crate) fn overload(bench: &Bench, scheduler: &Scheduler) -> Result<(Vec<Process>, Stats)> {
    // The mode lasts for a fraction of a second; a real-time process will not
    // miss it.
    as_real_time(|| {
        let burst = begin_together(12 * bench.cpus(), ms(40))?;
        let stats = scheduler.wait_for("fair-only mode", |stats| stats.mode == 1)?;
        Ok((burst, stats))
    })
}

fn overload_goes_fair_only_and_back(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 10000")?;
    let (mut burst, stats) = overload(bench, &scheduler)?;
    bench.say(format_args!(
        "{} overloads, {} moved, longest delay {} us",
        stats.overloads, stats.moved, stats.queue_delay_max_us
    ));
    ensure!(stats.overloads >= 1, "no overload counted");
    // On one CPU all tasks are pinned, and pinned tasks are not moved.
    ensure!(stats.moved > 0 || bench.cpus() == 1, "nothing was moved");
    // Between O x S and the next tick, which checks FILTER's head.
    let log = scheduler.log();
    let waited = log.split_once("has waited ");
    let waited = waited.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    bench.say(format_args!("reported after {waited:?} ms, 3 x S = 30 ms"));
    ensure!(
        waited.is_some_and(|waited: u64| (30..=38).contains(&waited)),
        "not at 3 x S"
    );
    wait_for_all(&mut burst)?;
    let stats = scheduler.wait_for("FILTER mode", |stats| stats.mode == 0)?;
    ensure!(stats.lost_events == 0, "lost {} events", stats.lost_events);
    ensure!(stats.completions == burst.len() as u64, "{stats:?}");
    scheduler.finish()
}

fn no_overload_never_switches(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 10000 --no-overload")?;
    let mut burst = as_real_time(|| begin_together(24 * bench.cpus(), ms(20)))?;
    wait_for_all(&mut burst)?;
    let stats = scheduler.stats()?;
    bench.say(format_args!(
        "longest delay {} us",
        stats.queue_delay_max_us
    ));
    ensure!(stats.queue_delay_max_us > 60_000, "there was no overload");
    ensure!(stats.mode == 0, "mode is {}", stats.mode);
    ensure!(
        (stats.overloads, stats.moved, stats.relieved) == (0, 0, 0),
        "{stats:?}"
    );
    scheduler.finish()
}

fn kernel_half_relieves_without_loader(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 10000")?;
    scheduler.signal(Signal::SIGSTOP)?;
    let mut burst = as_real_time(|| begin_together(20 * bench.cpus(), ms(20)))?;
    let all_run = wait_for_all(&mut burst);
    scheduler.signal(Signal::SIGCONT)?;
    all_run?;
    let stats = scheduler.stats()?;
    let longest = burst.iter().map(|one| one.start_delay()).max();
    bench.say(format_args!(
        "{} relieved, longest delay in FILTER {} us, fork to start {:?} at most",
        stats.relieved,
        stats.queue_delay_max_us,
        longest.unwrap_or_default()
    ));
    ensure!(stats.relieved > 0, "nothing was relieved");
    // 3 x S, 50 ms for the loader's answer, and the relieved work.
    ensure!(stats.queue_delay_max_us < 150_000, "relieved too late");
    ensure!(state() == "enabled", "the kernel has ejected the scheduler");
    scheduler.wait_for("FILTER mode", |stats| stats.mode == 0)?;
    scheduler.finish()
}
