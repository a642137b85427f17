//! The learned policy.

use anyhow::{ensure, Result};

use crate::case::{Bench, Case};
use crate::clock::ms;
use crate::process::{fork_every, wait_for_all, Process};
use crate::scheduler::output_of;

pub const CASES: &[Case] = &[
    Case {
        name: "learned_is_sfs_without_history",
        about: "--policy learned demotes as sfs does until a hundred invocations have ended",
        run: learned_is_sfs_without_history,
    },
    Case {
        name: "learned_puts_short_before_long",
        about:
            "once functions are known, a short one runs at once beside hogs that were queued first",
        run: learned_puts_short_before_long,
    },
    Case {
        name: "learned_starves_nobody",
        about: "hogs with ranks share the machine in turns, far from the watchdog",
        run: learned_starves_nobody,
    },
    Case {
        name: "fair_gives_no_credit",
        about: "--policy fair: nothing runs in FILTER",
        run: fair_gives_no_credit,
    },
];

fn learned_is_sfs_without_history(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned --slice-us 20000")?;
    let mut long = Process::burner(ms(100))?;
    long.wait()?;
    let stats = scheduler.stats()?;
    ensure!((stats.demotions, stats.rank_tables) == (1, 0), "{stats:?}");
    scheduler.finish()
}

fn learned_puts_short_before_long(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 0)?;
    // Two for each CPU, well beyond all that is known.
    let hogs = (0..2 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    crate::clock::sleep(ms(300));
    for _ in 0..5 {
        let mut short = Process::burner(ms(5))?;
        short.wait()?;
        bench.at_most("turnaround", short.turnaround(), ms(40))?;
    }
    let listed = output_of(std::process::Command::new(bench.program()).arg("functions"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    ensure!(
        listed.lines().count() >= 2,
        "no function is listed: {listed}"
    );
    drop(hogs);
    scheduler.finish()
}

fn learned_starves_nobody(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 0)?;
    let hogs = (0..4 * bench.cpus()).map(|_| Process::hog());
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    crate::clock::sleep(ms(12_000));
    let longest = hogs.iter().map(|hog| hog.longest_gap()).max();
    bench.at_most("longest wait", longest.unwrap_or_default(), ms(10_000))?;
    let least = hogs.iter().map(|hog| hog.cpu()).min().unwrap_or_default();
    bench.say(format_args!("the one with least had {least:?} in 12 s"));
    ensure!(least > ms(300), "one has had {least:?} only");
    drop(hogs);
    scheduler.finish()
}

fn fair_gives_no_credit(bench: &Bench) -> Result<()> {
    let scheduler = bench.load("--policy fair")?;
    let burners = (0..2 * bench.cpus()).map(|_| Process::burner(ms(30)));
    let mut burners = burners.collect::<Result<Vec<_>>>()?;
    wait_for_all(&mut burners)?;
    let stats = scheduler.stats()?;
    ensure!(stats.filter_starts == 0, "{stats:?}");
    scheduler.finish()
}
