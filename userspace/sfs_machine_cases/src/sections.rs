//! Sections in which a task must not migrate, while all CPUs are busy.

use anyhow::{ensure, Result};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{ms, sleep, wait_until, PATIENCE};
use sfs_testbed::late_page::LatePage;
use sfs_testbed::process::{confine, wait_for_all, Process};
use sfs_testbed::section::Section;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "spins_where_it_must_stay",
        about:
            "a task with migration disabled for 250 ms of work is demoted and runs again on its CPU",
        run: spins_where_it_must_stay,
    },
    Case {
        name: "sleeps_where_it_must_stay",
        about:
            "a task that wakes up with migration disabled on a CPU full of hogs runs there at once",
        run: sleeps_where_it_must_stay,
    },
];

fn spins_where_it_must_stay(bench: &Bench) -> Result<()> {
    let section = Section::that_spins()?;
    let scheduler = bench.load_sfs("--slice-us 20000 --no-overload --fair-max-wait-ms 50")?;
    let chains = bench.saturate_filter()?;
    let enter_on_each = || {
        bench.each_cpu(|_| {
            Process::spawn(|report| {
                section.enter(0).unwrap_or_else(|error| panic!("{error:#}"));
                report.burn(ms(1));
            })
        })
    };
    // No task is confined: only the section can keep a task on its CPU.
    let without = scheduler.stats()?;
    sleep(ms(300));
    let before = scheduler.stats()?;
    wait_for_all(&mut enter_on_each()?)?;
    let stats = scheduler.stats()?;
    let (usual, within) = (before.pinned - without.pinned, stats.pinned - before.pinned);
    bench.say(format_args!(
        "queued for one CPU {usual} times without sections, {within} with; {} demotions",
        stats.demotions - before.demotions
    ));
    ensure!(
        within >= usual + bench.cpus() as u64,
        "tasks in sections were not queued for their CPUs"
    );
    // A change of the affinity waits for the section's end.
    let mut inside = enter_on_each()?;
    for round in 0..4 {
        sleep(ms(40));
        for one in &mut inside {
            if !one.has_ended() {
                confine(one.pid(), &[round % bench.cpus()])?;
            }
        }
    }
    wait_for_all(&mut inside)?;
    drop(chains);
    scheduler.finish()
}

fn sleeps_where_it_must_stay(bench: &Bench) -> Result<()> {
    const ROUNDS: u32 = 10;
    let section = Section::that_reads()?;
    let scheduler = bench.load_sfs("--slice-us 50000 --no-overload")?;
    let hogs = bench.demoted_hogs(&scheduler)?;
    let mut sleeper = Process::spawn(|report| {
        let enter = || -> Result<()> {
            let page = LatePage::new()?;
            for _ in 0..ROUNDS {
                page.fill_after(ms(20));
                section.enter(page.address())?;
                report.burn(ms(1));
                page.empty();
            }
            Ok(())
        };
        enter().unwrap_or_else(|error| panic!("{error:#}"));
    })?;
    let done = wait_until(PATIENCE, || sleeper.has_ended());
    ensure!(done, "it does not wake up");
    sleeper.wait()?;
    // Ten times 20 ms of sleep and 1 ms of work.
    ensure!(sleeper.turnaround() >= ms(210), "it did not sleep");
    bench.at_most("turnaround", sleeper.turnaround(), ms(300))?;
    drop(hogs);
    scheduler.finish()
}
