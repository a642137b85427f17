//! FILTER split into shards: order across shards, no idle CPU, and switches of the mode.

use std::time::Duration;

use anyhow::{ensure, Result};

use crate::overload::overload;
use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, sleep};
use sfs_testbed::process::{as_real_time, confine, wait_for_all, Process};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "shards_keep_the_order_of_arrival",
        about: "--filter-shards: no invocation is overtaken by one that arrives much later",
        run: shards_keep_the_order_of_arrival,
    },
    Case {
        name: "shards_leave_no_cpu_idle",
        about: "tasks that wait in one shard run on the CPUs of all shards",
        run: shards_leave_no_cpu_idle,
    },
    Case {
        name: "shards_go_fair_only_and_back",
        about: "overload moves the waiting tasks of every shard",
        run: shards_go_fair_only_and_back,
    },
    Case {
        name: "as_many_shards_as_cpus_at_most",
        about: "--filter-shards above the number of CPUs: a warning, and one shard for each CPU",
        run: as_many_shards_as_cpus_at_most,
    },
];

fn shards_keep_the_order_of_arrival(bench: &Bench) -> Result<()> {
    // A task with a CPU may have to leave it to a kernel thread, for at most 4 ms, before
    // it notes its start.
    const LAG: Duration = ms(8);
    let one = overtaking(bench, 1)?;
    let many = overtaking(bench, bench.cpus())?;
    bench.say(format_args!(
        "one shard: {one:?}, one for each CPU: {many:?}"
    ));
    ensure!(one <= LAG, "a single queue is first in, first out");
    // Arrivals are 2 ms apart. A CPU checks each other shard every cpus - 1
    // dispatches. Meanwhile it may serve as many tasks of its own shard, and
    // these arrive every 2 ms x cpus.
    let rounds = bench.cpus() as u32 * bench.cpus() as u32;
    ensure!(many <= LAG + ms(2) * rounds, "out of order by {many:?}");
    Ok(())
}

/// Lets a queue grow and drain in `shards`; returns the maximum by which a task
/// that started earlier arrived later than one that was still waiting.
fn overtaking(bench: &Bench, shards: usize) -> Result<Duration> {
    let options = "--slice-us 200000 --no-overload --fair-max-wait-ms 10000 --filter-shards";
    let scheduler = bench.load_sfs(&format!("{options} {shards}"))?;
    let mut processes = as_real_time(|| {
        let burst = (0..20 * bench.cpus()).map(|_| {
            sleep(ms(2));
            Process::burner(ms(10))
        });
        burst.collect::<Result<Vec<_>>>()
    })?;
    wait_for_all(&mut processes)?;
    let stats = scheduler.stats()?;
    bench.say(format_args!(
        "{shards} shards: {} of {} starts from another",
        stats.shard_moves, stats.filter_starts
    ));
    ensure!(
        (stats.shard_moves > 0) == (shards > 1),
        "{} shard moves",
        stats.shard_moves
    );
    scheduler.finish()?;
    // In the order of starts: the number of the arrival, and the latest arrival so far.
    let mut by_start: Vec<_> = processes
        .iter()
        .enumerate()
        .filter_map(|(arrival, one)| Some((one.started()?, arrival)))
        .collect();
    by_start.sort_unstable();
    ensure!(by_start.len() == processes.len(), "not all have started");
    let mut latest = 0;
    let mut worst = 0;
    for (_, arrival) in by_start {
        worst = worst.max(latest.max(arrival) - arrival);
        latest = latest.max(arrival);
    }
    Ok(ms(2) * worst as u32)
}

fn shards_leave_no_cpu_idle(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let options = "--slice-us 200000 --no-overload --filter-shards";
    let scheduler = bench.load_sfs(&format!("{options} {}", bench.cpus()))?;
    // They may run on all CPUs but the first, so each waits in its parent's shard.
    let cpus: Vec<usize> = (1..bench.cpus()).collect();
    let mut processes = as_real_time(|| {
        let burst = (0..4 * cpus.len()).map(|_| {
            let process = Process::burner(ms(50))?;
            confine(process.pid(), &cpus)?;
            Ok(process)
        });
        burst.collect::<Result<Vec<_>>>()
    })?;
    wait_for_all(&mut processes)?;
    let longest = processes.iter().map(Process::turnaround).max();
    let stats = scheduler.stats()?;
    bench.say(format_args!("{} from another shard", stats.shard_moves));
    // Four for each CPU, of 50 ms each.
    bench.at_most("all of them", longest.unwrap_or_default(), ms(250))?;
    ensure!(stats.demotions == 0, "{} demotions", stats.demotions);
    scheduler.finish()
}

fn shards_go_fair_only_and_back(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    // So long that the whole burst exists before its first task has waited for 3 x S; later
    // arrivals are not moved.
    let options = "--slice-us 20000 --filter-shards";
    let scheduler = bench.load_sfs(&format!("{options} {}", bench.cpus()))?;
    let (mut burst, stats) = overload(bench, &scheduler)?;
    bench.say(format_args!(
        "{} moved of {} begun; longest delay {} us; {}",
        stats.moved,
        stats.arrivals,
        stats.queue_delay_max_us,
        scheduler.log().lines().last().unwrap_or_default()
    ));
    // More than one shard can have.
    ensure!(
        stats.moved >= 3 * bench.cpus() as u64,
        "only {} moved",
        stats.moved
    );
    wait_for_all(&mut burst)?;
    let stats = scheduler.wait_for("FILTER mode", |stats| stats.mode == 0)?;
    ensure!(stats.completions == burst.len() as u64, "{stats:?}");
    scheduler.finish()
}

fn as_many_shards_as_cpus_at_most(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs(&format!("--filter-shards {}", bench.cpus() + 1))?;
    let log = scheduler.log();
    let warning = log
        .lines()
        .find(|line| line.contains("--filter-shards") && line.contains("WARN"));
    bench.say(warning.unwrap_or("no warning"));
    ensure!(
        warning.is_some_and(|line| line.contains(&format!("online CPUs, {}:", bench.cpus()))),
        "the warning is missing: {log}"
    );
    let burst = (0..8 * bench.cpus()).map(|_| Process::burner(ms(5)));
    wait_for_all(&mut burst.collect::<Result<Vec<_>>>()?)?;
    scheduler.finish()
}
