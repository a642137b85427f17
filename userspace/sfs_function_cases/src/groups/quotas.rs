//! cpu.max: the CPU time that a group gets.

use anyhow::{bail, ensure, Context, Result};
use std::time::Duration;

use sfs_testbed::case::Bench;
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{cpu_time, ms, now, since, sleep, wait_until, PATIENCE};
use sfs_testbed::scheduler::NOT_TOLD;

use super::shares::{expect_share, hogs_in, load_with_quotas, nest, used_in, ALL_FAIR};

pub(super) fn quota_is_kept_in_fair(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "50000 100000")?;
    let hog = hogs_in(&group, 1)?;
    sleep(ms(200));
    let used = used_in(&group, ms(3000))?;
    expect_share(bench, "a group with half a CPU", used, ms(3000), 50.0, 3.0)?;
    let stats = scheduler.stats()?;
    ensure!(stats.throttled >= 25, "{} times throttled", stats.throttled);
    drop(hog);
    scheduler.finish()
}

pub(super) fn quota_is_kept_in_filter(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, "--policy sfs --slice-us 5000000 --no-overload")?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "25000 50000")?;
    let hog = hogs_in(&group, 1)?;
    sleep(ms(200));
    let used = used_in(&group, ms(3000))?;
    expect_share(bench, "half a CPU, in FILTER", used, ms(3000), 50.0, 3.0)?;
    let stats = scheduler.stats()?;
    ensure!(stats.demotions == 0, "{} demotions", stats.demotions);
    drop(hog);
    scheduler.finish()
}

pub(super) fn quota_holds_for_all_threads_and_levels(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    let top = Cgroup::new("top")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    let (one, two) = (Cgroup::new("top/one")?, Cgroup::new("top/two")?);
    top.set("cpu.max", "120000 100000")?;
    one.set("cpu.max", "40000 100000")?;
    let hogs = [&one, &two].map(|group| hogs_in(group, bench.cpus()));
    let hogs = hogs.into_iter().collect::<Result<Vec<_>>>()?;
    sleep(ms(500));
    let before = (one.cpu_time()?, two.cpu_time()?);
    sleep(ms(3000));
    let used = (one.cpu_time()? - before.0, two.cpu_time()? - before.1);
    bench.say(format_args!("one {:?}, two {:?} in 3 s", used.0, used.1));
    ensure!(used.0 <= ms(1290), "more than its own quota");
    expect_share(bench, "both", used.0 + used.1, ms(3000), 120.0, 4.0)?;
    drop(hogs);
    scheduler.finish()
}

pub(super) fn quota_holds_at_any_depth(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    // A hog on each CPU may overrun by a tick, for which the group pays in later periods. A tick is
    // 0.2 % of the measured time.
    let error = (0.2 * bench.cpus() as f64).max(4.0);
    for depth in [1, 9, 33, 60] {
        let nested = nest("top", depth)?;
        nested[0].set("cpu.max", "50000 100000")?;
        let hogs = hogs_in(&nested[depth], bench.cpus())?;
        sleep(ms(500));
        let used = used_in(&nested[0], ms(2000))?;
        let what = format!("{depth} groups below it");
        expect_share(bench, &what, used, ms(2000), 50.0, error)?;
        drop(hogs);
    }
    scheduler.finish()
}

/// The CPU time that a group uses while the quota of another one goes back and forth as often as it
/// can, for `least`; and the time that this took. On a single CPU that is the time without the
/// case's own work, which is an eighth of it.
fn used_beside_changes(
    bench: &Bench,
    group: &Cgroup,
    other: &Cgroup,
    quotas: [&str; 2],
    least: Duration,
) -> Result<(Duration, Duration)> {
    let (start, before, mut changes) = (now(), group.cpu_time()?, 0);
    let own = cpu_time();
    while since(start) < least {
        other.set("cpu.max", quotas[changes % 2])?;
        changes += 1;
        sleep(ms(1));
    }
    let (used, time) = (group.cpu_time()? - before, since(start));
    let own = cpu_time() - own;
    bench.say(format_args!("{changes} changes in {time:?} take {own:?}"));
    ensure!(
        changes as u128 > least.as_millis() / 6,
        "only {changes} changes"
    );
    match bench.cpus() {
        1 => Ok((used, time - own)),
        _ => Ok((used, time)),
    }
}

/// A tenant may change the quotas of groups below its own as often as it likes. If each change
/// restarted the timer that releases groups, it would never run.
pub(super) fn changed_quotas_hold_up_nobody(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    let (group, other) = (Cgroup::new("limited")?, Cgroup::new("other")?);
    group.set("cpu.max", "50000 100000")?;
    let hog = hogs_in(&group, 1)?;
    sleep(ms(200));
    let quotas = ["30000 100000", "40000 100000"];
    let (used, time) = used_beside_changes(bench, &group, &other, quotas, ms(3000))?;
    expect_share(bench, "a group with half a CPU", used, time, 50.0, 3.0)?;
    drop(hog);
    scheduler.finish()
}

/// The same with the only quota of the machine, which comes and goes, and tasks that wait for a
/// quota that is no more.
pub(super) fn lifted_quota_frees_its_tasks(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    let (group, other) = (Cgroup::new("limited")?, Cgroup::new("other")?);
    group.set("cpu.max", "10000 1000000")?;
    let hog = hogs_in(&group, 1)?;
    scheduler.wait_for("the group to be throttled", |stats| stats.throttled >= 1)?;
    group.set("cpu.max", "max")?;
    let quotas = ["30000 100000", "max"];
    let (used, time) = used_beside_changes(bench, &group, &other, quotas, ms(2000))?;
    expect_share(bench, "a group without a quota", used, time, 100.0, 10.0)?;
    drop(hog);
    scheduler.finish()
}

pub(super) fn quotas_of_hundreds_of_groups(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    // The quotas add up to three quarters of the machine.
    let count = 75 * bench.cpus() as u64;
    let groups = (0..count).map(|number| {
        let group = Cgroup::new(&format!("limited{number}"))?;
        group.set("cpu.max", "1000 100000")?;
        Ok(group)
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let hogs = groups.iter().map(|group| hogs_in(group, 1));
    let hogs = hogs.collect::<Result<Vec<_>>>()?;
    scheduler.wait_for("all to be throttled", |stats| stats.throttled >= count)?;
    let before = groups.iter().map(Cgroup::cpu_time);
    let before = before.collect::<Result<Vec<_>>>()?;
    let start = now();
    let mut longest = ms(0);
    while since(start) < ms(4000) {
        let due = now() + ms(10);
        sleep(ms(10));
        longest = longest.max(since(due));
    }
    let seconds = since(start).as_secs_f64();
    bench.at_most("a wake-up beside them", longest, ms(6))?;
    let used = groups.iter().map(Cgroup::cpu_time);
    let used = used.collect::<Result<Vec<_>>>()?;
    for group in &groups {
        // Otherwise each would wait for quota before it ends, and the next
        // would be killed only then.
        group.set("cpu.max", "max")?;
        group.set("cgroup.kill", "1")?;
    }
    drop(hogs);
    let shares = used.iter().zip(&before);
    let shares = shares.map(|(used, before)| (*used - *before).as_secs_f64() / seconds);
    let (least, most) = shares.fold((1.0, 0.0), |(least, most), share| {
        (f64::min(least, share), f64::max(most, share))
    });
    bench.say(format_args!("each got {least:.4} to {most:.4} of a CPU"));
    // A turn is as long as a tick, four times the quota; the next periods make up for it.
    ensure!(least > 0.005 && most < 0.013, "want 0.01");
    scheduler.finish()
}

pub(super) fn quotas_are_kept_or_nothing_is_loaded(bench: &Bench) -> Result<()> {
    const SENTENCE: &str = "the cgroup limited has a quota (cpu.max), which scx_sfs cannot enforce";
    enable_cpu_controller()?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "50000 100000")?;
    let scheduler = match bench.load(ALL_FAIR) {
        Err(error) => {
            let error = format!("{error:#}");
            ensure!(error.contains(SENTENCE), "it is another error: {error}");
            return leaves_when_there_is_a_quota(bench, &group, SENTENCE);
        }
        Ok(scheduler) => scheduler,
    };
    ensure!(
        !scheduler.log().contains(NOT_TOLD),
        "loaded although a quota cannot be kept"
    );
    let hog = hogs_in(&group, 1)?;
    sleep(ms(200));
    let used = used_in(&group, ms(2000))?;
    expect_share(
        bench,
        "a quota older than the scheduler",
        used,
        ms(2000),
        50.0,
        3.0,
    )?;
    drop(hog);
    scheduler.finish()
}

/// Expects that the loader exits when a group gets a quota, on a kernel that
/// does not report quotas.
fn leaves_when_there_is_a_quota(bench: &Bench, group: &Cgroup, sentence: &str) -> Result<()> {
    let scheduler = bench.load(&format!("{ALL_FAIR} --ignore-quotas"))?;
    scheduler.finish()?;
    group.set("cpu.max", "max")?;
    let mut scheduler = bench.load(ALL_FAIR)?;
    group.set("cpu.max", "50000 100000")?;
    wait_until(PATIENCE, || !scheduler.is_alive());
    let (status, log) = scheduler.wait_for_end()?;
    bench.say(format_args!("{status}"));
    ensure!(log.contains(sentence), "the log lacks the reason: {log}");
    ensure!(status.code() == Some(1), "{status}");
    Ok(())
}

pub(super) fn groups_without_room_are_refused(bench: &Bench) -> Result<()> {
    const ROOM: usize = 64;
    enable_cpu_controller()?;
    let top = Cgroup::new("crowded")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    let options = format!("{ALL_FAIR} --max-cgroups {ROOM}");
    let scheduler = bench.load(&options)?;
    let mut groups = Vec::new();
    let refused = loop {
        match Cgroup::new(&format!("crowded/{}", groups.len())) {
            Ok(group) if groups.len() < 2 * ROOM => groups.push(group),
            Ok(_) => bail!("a group beyond the limit was made"),
            Err(error) => break format!("{error:#}"),
        }
    };
    bench.say(format_args!("after {} groups: {refused}", groups.len()));
    ensure!(
        refused.contains("No space left"),
        "refused for another reason: {refused}"
    );
    // Existing groups still work, and a removed one makes room.
    let last = groups.pop().context("no group could be made")?;
    let hog = hogs_in(&last, 1)?;
    sleep(ms(50));
    ensure!(last.cpu_time()? > ms(20), "nothing runs in the last group");
    drop((hog, last));
    let made = wait_until(PATIENCE, || {
        Cgroup::new("crowded/again").is_ok_and(|group| {
            groups.push(group);
            true
        })
    });
    ensure!(made, "a removed group makes no room");
    scheduler.finish()?;

    for number in groups.len()..2 * ROOM {
        groups.push(Cgroup::new(&format!("crowded/{number}-more"))?);
    }
    let Err(error) = bench.load(&options) else {
        bail!("loaded although there are too many groups");
    };
    let error = format!("{error:#}");
    bench.say(&error);
    ensure!(error.contains("increase --max-cgroups"), "{error}");
    Ok(())
}
