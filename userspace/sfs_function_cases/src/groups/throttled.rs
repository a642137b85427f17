//! cpu.max: the end of throttling, and tasks beside a throttled group.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use sfs_testbed::case::Bench;
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{burn, ms, now, since, sleep, wait_for_grace_period};
use sfs_testbed::process::{fork_every, wait_for_all, Process};

use super::shares::{expect_share, hogs_in, load_with_quotas, used_in, ALL_FAIR};
use crate::overload::overload;

pub(super) fn lifted_quota_lets_go(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "1000 1000000")?;
    let hogs = hogs_in(&group, 2)?;
    scheduler.wait_for("the quota to be used up", |stats| stats.throttled >= 1)?;
    sleep(ms(50));
    let waiting = (hogs[0].cpu(), hogs[1].cpu());
    sleep(ms(100));
    ensure!((hogs[0].cpu(), hogs[1].cpu()) == waiting, "they still run");

    let elsewhere = Cgroup::new("elsewhere")?;
    elsewhere.take(hogs[0].pid())?;
    sleep(ms(100));
    ensure!(
        hogs[0].cpu() - waiting.0 > ms(30),
        "the moved task does not run"
    );
    ensure!(hogs[1].cpu() == waiting.1, "the other task runs too");
    group.set("cpu.max", "max")?;
    sleep(ms(100));
    // The two may share one CPU now.
    ensure!(
        hogs[1].cpu() - waiting.1 > ms(30),
        "it does not run without the quota"
    );
    drop(hogs);
    scheduler.finish()
}

/// Some tasks wait for quota before they have had a ranked slice. The kernel ejects a scheduler that puts them, in order of
/// arrival, into the queue that is ordered by rank.
pub(super) fn quota_outlasts_the_first_ranks(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let options = "--policy learned --slice-us 20000 --no-overload";
    let scheduler = load_with_quotas(bench, options)?;
    // A fifth of the machine at most, so that each could have its quota.
    let count = (2 * bench.cpus()).min(8);
    let groups = (0..count).map(|number| {
        let group = Cgroup::new(&format!("limited{number}"))?;
        group.set("cpu.max", "10000 100000")?;
        Ok((hogs_in(&group, 4)?, group))
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    // Work that waits by rank.
    let hogs = bench.each_cpu(|_| Process::hog())?;
    fork_every(ms(4), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    // Quota that is not used in its period is lost, and the group may wait behind ranked work
    // meanwhile: with 8 CPUs it gets 7 to 10.5 %.
    let used = used_in(&groups[0].1, ms(2000))?;
    expect_share(bench, "a group with a tenth", used, ms(2000), 10.0, 5.0)?;
    drop((hogs, groups));
    scheduler.finish()
}

pub(super) fn quota_does_not_prolong_overload(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, "--policy sfs --slice-us 10000")?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "1000 100000")?;
    // With 4 CPUs they would wait for quota for 22 s, far from the end of their
    // credit.
    let waiting = (0..6 * bench.cpus()).map(|_| Process::spawn_in(&group, |r| r.burn(ms(9))));
    let waiting = waiting.collect::<Result<Vec<_>>>()?;
    sleep(ms(300));
    let (mut burst, _) = overload(bench, &scheduler)?;
    wait_for_all(&mut burst)?;
    let over = now();
    scheduler.wait_for("FILTER mode", |stats| stats.mode == 0)?;
    bench.at_most("from the burst's end to FILTER", since(over), ms(500))?;
    ensure!(
        scheduler.stats()?.completions < (burst.len() + waiting.len()) as u64,
        "no task waits"
    );
    group.set("cpu.max", "max")?;
    drop(waiting);
    scheduler.finish()
}

/// Returns the longest of 100 writes of a byte to a file. Another process, in
/// `group`, writes to the same file in pieces of 4 MiB. Each write holds the
/// file's lock.
fn longest_write_beside(group: &Cgroup) -> Result<Duration> {
    let path = std::env::temp_dir().join("contended");
    let file = File::create(&path).context("cannot make a file")?;
    let piece = vec![0; 4 << 20];
    let writer = Process::spawn_in(group, |report| {
        while !report.is_stopped() && file.write_all_at(&piece, 0).is_ok() {}
    })?;
    sleep(ms(200));
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        sleep(ms(10));
        let began = now();
        file.write_all_at(&[0], 0).context("cannot write")?;
        longest = longest.max(since(began));
    }
    drop(writer);
    std::fs::remove_file(&path).context("cannot remove the file")?;
    Ok(longest)
}

pub(super) fn quota_holds_nobody_inside_the_kernel(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    load_with_quotas(bench, ALL_FAIR)?.finish()?; // or the case is skipped
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "5000 100000")?;
    let base = longest_write_beside(&group)?;
    bench.say(format_args!("EEVDF: {base:?}"));
    for options in [
        ALL_FAIR,
        "--policy sfs --slice-us 5000000 --no-overload",
        "",
    ] {
        let scheduler = load_with_quotas(bench, options)?;
        let longest = longest_write_beside(&group)?;
        // A tick is 4 ms. Before 6.18 EEVDF throttles a task wherever it is, and so does scx_sfs.
        let what = format!("with '{options}'");
        bench.at_most(&what, longest, base * 3 / 2 + ms(8))?;
        scheduler.finish()?;
    }
    Ok(())
}

pub(super) fn quota_leaves_others_alone(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load_sfs("--slice-us 50000 --no-overload")?;
    let group = Cgroup::new("limited")?;
    let hogs = hogs_in(&group, 4 * bench.cpus())?;
    // Hogs with credit that arrived earlier would run before the short process.
    let demoted = hogs.len() as u64;
    scheduler.wait_for("the hogs' demotion", |stats| stats.demotions >= demoted)?;
    group.set("cpu.max", "100000 100000")?;
    sleep(ms(500));
    for _ in 0..5 {
        let mut short = Process::spawn(|_| burn(ms(10)))?;
        short.wait()?;
        bench.at_most("turnaround", short.turnaround(), ms(20))?;
    }
    drop(hogs);
    scheduler.finish()
}

pub(super) fn quota_delays_no_grace_period(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    // Each is throttled for most of a second, ten times the default period.
    let groups = (0..2 * bench.cpus()).map(|number| {
        let group = Cgroup::new(&format!("held{number}"))?;
        group.set("cpu.max", "20000 1000000")?;
        Ok(group)
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let hogs = groups.iter().map(|group| hogs_in(group, 1));
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    scheduler.wait_for("all to be throttled", |stats| {
        stats.throttled >= groups.len() as u64
    })?;
    let (start, mut longest) = (now(), ms(0));
    while since(start) < ms(2000) {
        let asked = now();
        wait_for_grace_period()?;
        longest = longest.max(since(asked));
        sleep(ms(10));
    }
    bench.at_most("the longest grace period", longest, ms(200))?;
    for group in &groups {
        group.set("cpu.max", "max")?;
    }
    drop(hogs);
    scheduler.finish()
}
