//! FILTER runs before FAIR and in order, and FAIR does not starve.

use std::mem;
use std::time::Duration;

use anyhow::{bail, ensure, Result};
use nix::sched::sched_yield;

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{burn, ms, now, since, sleep, InStep};
use sfs_testbed::process::{as_real_time, fork_burst, set_nice, turns_of, wait_for_all, Process};
use sfs_testbed::trace::{self, Trace};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "filter_preempts_fair",
        about: "a new process starts within 2 ms of its wake-up although hogs run on all CPUs, one of 40 within 4 ms",
        run: filter_preempts_fair,
    },
    Case {
        name: "filter_is_not_preempted_by_filter",
        about: "many new processes run first in, first out, each without a switch",
        run: filter_is_not_preempted_by_filter,
    },
    Case {
        name: "renice_moves_nobody_forward",
        about: "a process that yielded in FILTER stays behind the others, however often it is reniced",
        run: renice_moves_nobody_forward,
    },
    Case {
        name: "renice_starves_nobody",
        about: "a process in FILTER that is repeatedly put last gets a turn after 5 s",
        run: renice_starves_nobody,
    },
    Case {
        name: "hogs_progress_under_saturated_filter",
        about: "FAIR's head waits no longer than --fair-max-wait-ms",
        run: hogs_progress_under_saturated_filter,
    },
];

fn filter_preempts_fair(bench: &Bench) -> Result<()> {
    const TIMES: u64 = 40;
    bench.needs_two_cpus()?;
    let scheduler = bench.load_sfs("--slice-us 10000 --no-overload")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let before = scheduler.stats()?;
    let _in_step = InStep::start()?;
    let _trace = Trace::start(&["sched/sched_switch", "sched/sched_wakeup_new"])?;
    let mut processes = Vec::new();
    for i in 0..TIMES {
        // A different phase of the tick each time.
        sleep(Duration::from_micros(5000 + 730 * i));
        let mut process = Process::burner(ms(1))?;
        // The case keeps its own CPU busy, which would otherwise be free for
        // the child.
        let start = now();
        while process.started().is_none() && since(start) < ms(20) {}
        process.wait()?;
        processes.push(process);
    }
    let text = trace::text()?;
    let after = scheduler.stats()?;
    let preemptions = after.preemptions - before.preemptions;
    bench.say(format_args!("{preemptions} preemptions for {TIMES} forks"));
    // On busy emulated CPUs the fork itself and the first page faults take milliseconds;
    // the scheduler's part begins at the wake-up.
    let from_fork = sorted(&processes, |one| Some(one.start_delay()));
    let from_wake_up = sorted(&processes, |one| trace::first_run_delay(&text, one.pid()));
    bench.say(format_args!("fork to start: {from_fork:?}"));
    bench.say(format_args!("wake-up to start: {from_wake_up:?}"));
    ensure!(
        from_wake_up.len() == processes.len(),
        "some starts are not in the trace"
    );
    // In two builds one of 40 took 2.4 to 2.6 ms, in none two. A possible
    // reason: the claimed CPU had just got another task. The next tick, up to 4
    // ms later, corrects this.
    let [.., longest_but_one, longest] = from_wake_up[..] else {
        bail!("too few have started");
    };
    bench.at_most("longest but one from wake-up", longest_but_one, ms(2))?;
    bench.at_most("longest from wake-up", longest, ms(4))?;
    ensure!(preemptions >= TIMES, "{preemptions} preemptions");
    drop(hogs);
    scheduler.finish()
}

fn sorted(processes: &[Process], delay: impl Fn(&Process) -> Option<Duration>) -> Vec<Duration> {
    let mut delays: Vec<_> = processes.iter().filter_map(delay).collect();
    delays.sort();
    delays
}

fn filter_is_not_preempted_by_filter(bench: &Bench) -> Result<()> {
    let options = "--slice-us 200000 --no-overload --fair-max-wait-ms 10000";
    let scheduler = bench.load_sfs(options)?;
    let _trace = Trace::start(&["sched/sched_switch"])?;
    let mut processes = fork_burst(3 * bench.cpus(), ms(20))?;
    // This process is older than the scheduler and is treated as a daemon: each
    // of its checks would preempt one of the others.
    sleep(ms(150));
    wait_for_all(&mut processes)?;
    let text = trace::text()?;
    bench.expect_not_preempted(&text, &processes)?;

    let mut starts: Vec<Duration> = processes
        .iter()
        .filter_map(|one| trace::first_run(&text, one.pid()))
        .collect();
    let first = starts.iter().min().copied().unwrap_or_default();
    for start in &mut starts {
        *start -= first;
    }
    bench.say(format_args!("starts: {starts:?}"));
    ensure!(starts.len() == processes.len(), "not all are in the trace");
    // Two that get CPUs at the same time may start in either order, and emulated CPUs run
    // in turn; the next process on a CPU starts 20 ms later.
    let in_order = starts.windows(2).all(|two| two[0] <= two[1] + ms(2));
    ensure!(in_order, "they did not start in the order of arrival");
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 0, "{} demotions", stats.demotions);
    ensure!(
        stats.completions_in_credit == processes.len() as u64,
        "{stats:?}"
    );
    scheduler.finish()
}

fn renice_moves_nobody_forward(bench: &Bench) -> Result<()> {
    let options = "--slice-us 200000 --no-overload --fair-max-wait-ms 10000";
    let scheduler = bench.load_sfs(options)?;
    let (mut polite, mut others) = as_real_time(|| {
        let polite = Process::spawn(|report| {
            while !report.is_stopped() {
                report.burn(ms(1));
            }
            sched_yield().unwrap_or_default();
            burn(ms(15));
        })?;
        let others = (0..6 * bench.cpus()).map(|_| Process::burner(ms(20)));
        let others = others.collect::<Result<Vec<_>>>()?;
        polite.stop(); // it yields now, and is last in the queue
        Ok((polite, others))
    })?;
    // The kernel queues it again each time.
    for i in 0..60 {
        set_nice(polite.pid(), i % 2)?;
        sleep(ms(1));
    }
    wait_for_all(&mut others)?;
    polite.wait()?;
    let last_start = others.iter().filter_map(|one| one.started()).max();
    let (last_start, end) = (
        last_start.unwrap_or_default(),
        polite.ended().unwrap_or_default(),
    );
    bench.say(format_args!(
        "it ends {:?} after the start of the last other",
        end.saturating_sub(last_start)
    ));
    ensure!(
        end >= last_start + ms(10),
        "it ran {:?} before the last other",
        last_start.saturating_sub(end)
    );
    scheduler.finish()
}

fn renice_starves_nobody(bench: &Bench) -> Result<()> {
    let options = "--slice-us 200000 --no-overload --fair-max-wait-ms 10000";
    let scheduler = bench.load_sfs(options)?;
    let chains = bench.saturate_filter()?;
    sleep(ms(100));
    let victim = Process::burner(ms(20))?;
    let (mut nice, mut turns, mut since_turn) = (0, 0, now());
    let mut longest = ms(0);
    // A turn may end before the program's first line; then another wait begins.
    while victim.started().is_none() && longest < ms(10_000) {
        nice = 1 - nice;
        set_nice(victim.pid(), nice)?;
        sleep(ms(1));
        longest = longest.max(since(since_turn));
        let before = mem::replace(&mut turns, turns_of(victim.pid())?);
        if turns > before {
            since_turn = now();
        }
    }
    bench.at_most("reniced every millisecond, it waited", longest, ms(6000))?;
    drop((victim, chains));
    scheduler.finish()
}

fn hogs_progress_under_saturated_filter(bench: &Bench) -> Result<()> {
    const MAX_WAIT: Duration = ms(100);
    let scheduler = bench.load_sfs("--slice-us 30000 --no-overload --fair-max-wait-ms 100")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let chains = bench.saturate_filter()?;
    sleep(ms(300));
    let before: Vec<Duration> = hogs.iter().map(|hog| hog.cpu()).collect();
    for hog in &hogs {
        hog.forget_gap();
    }
    sleep(ms(1500));
    for (hog, before) in hogs.iter().zip(before) {
        let progress = hog.cpu() - before;
        bench.say(format_args!(
            "a hog got {progress:?} in 1.5 s, longest gap {:?}, bound {MAX_WAIT:?}",
            hog.longest_gap()
        ));
        ensure!(progress >= ms(30), "a hog makes little progress");
        // The bound is for FAIR's head; the other hogs are behind it, and other tasks in
        // FAIR take some of the turns.
        ensure!(hog.longest_gap() <= 3 * MAX_WAIT, "a hog waits too long");
    }
    let stats = scheduler.stats()?;
    bench.say(format_args!("{} due turns", stats.fair_turns_due));
    ensure!(stats.fair_turns_due > 0, "no turn was due");
    drop((hogs, chains));
    scheduler.finish()
}
