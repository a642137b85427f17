//! Control groups: cpu.weight and cpu.max.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::unistd::Pid;

use crate::case::{since, Bench, Case, Skip};
use crate::cases::overload::overload;
use crate::cgroup::{enable_cpu_controller, Cgroup};
use crate::clock::{burn, ms, now, sleep, wait_until};
use crate::process::{pin_self, set_policy, wait_for_all, Process, PATIENCE};
use crate::scheduler::Scheduler;

pub const CASES: &[Case] = &[
    Case {
        name: "weights_share_fair",
        about: "groups with weights 100 and 300 share the machine 1:3, whatever runs in them",
        run: weights_share_fair,
    },
    Case {
        name: "weights_share_level_by_level",
        about: "a group's weight is divided among the groups in it, and follows changes",
        run: weights_share_level_by_level,
    },
    Case {
        name: "nesting_gains_no_weight",
        about: "a tenant whose work is many groups down has the share of its outermost one",
        run: nesting_gains_no_weight,
    },
    Case {
        name: "removed_groups_leave_no_weight",
        about: "groups that are removed while their last task is on its way out in FAIR",
        run: removed_groups_leave_no_weight,
    },
    Case {
        name: "quota_is_kept_in_fair",
        about: "a group with half a CPU gets half a CPU, though others idle",
        run: quota_is_kept_in_fair,
    },
    Case {
        name: "quota_is_kept_in_filter",
        about: "the same for a function that is within its credit",
        run: quota_is_kept_in_filter,
    },
    Case {
        name: "quota_holds_for_all_threads_and_levels",
        about: "two CPUs' worth above one, each group within its own",
        run: quota_holds_for_all_threads_and_levels,
    },
    Case {
        name: "quota_holds_at_any_depth",
        about: "a tenant that nests groups below its own has no more than its quota",
        run: quota_holds_at_any_depth,
    },
    Case {
        name: "quotas_of_hundreds_of_groups",
        about: "hundreds of groups are throttled all the time: each gets its quota, and no daemon notices",
        run: quotas_of_hundreds_of_groups,
    },
    Case {
        name: "quotas_are_kept_or_nothing_is_loaded",
        about: "a quota that is older than the scheduler; one that the kernel does not tell of",
        run: quotas_are_kept_or_nothing_is_loaded,
    },
    Case {
        name: "groups_without_room_are_refused",
        about: "a group for which there is no room, and so no quota, cannot be made",
        run: groups_without_room_are_refused,
    },
    Case {
        name: "lifted_quota_lets_go",
        about: "tasks that wait for quota go on when it is lifted, or when they are moved",
        run: lifted_quota_lets_go,
    },
    Case {
        name: "quota_does_not_prolong_overload",
        about: "functions that wait for quota, with credit, are no demand on FILTER",
        run: quota_does_not_prolong_overload,
    },
    Case {
        name: "quota_holds_nobody_inside_the_kernel",
        about: "others wait for a lock that a group without quota holds as long as under EEVDF",
        run: quota_holds_nobody_inside_the_kernel,
    },
    Case {
        name: "quota_leaves_others_alone",
        about: "beside a throttled group a short process is as fast as ever",
        run: quota_leaves_others_alone,
    },
    Case {
        name: "idle_and_uclamp_break_nothing",
        about: "cpu.idle and cpu.uclamp, set and taken back, leave every group its share",
        run: idle_and_uclamp_break_nothing,
    },
];

/// The options of a scheduler under which a hog is in FAIR almost at once.
const ALL_FAIR: &str = "--slice-us 1000 --no-overload";

/// Starts `count` hogs in `group`.
fn hogs_in(group: &Cgroup, count: usize) -> Result<Vec<Process>> {
    let hogs = (0..count).map(|_| {
        let hog = Process::hog()?;
        group.take(hog.pid())?;
        Ok(hog)
    });
    hogs.collect()
}

/// Returns the CPU time that `group` gets in `interval`.
fn used_in(group: &Cgroup, interval: Duration) -> Result<Duration> {
    let before = group.cpu_time()?;
    sleep(interval);
    Ok(group.cpu_time()? - before)
}

/// Expects that `part` is `percent` of `whole`, give or take `points`.
fn expect_share(
    bench: &Bench,
    what: &str,
    part: Duration,
    whole: Duration,
    percent: f64,
    points: f64,
) -> Result<()> {
    let share = 100.0 * part.as_secs_f64() / whole.as_secs_f64();
    bench.say(format_args!("{what}: {share:.1} %, want {percent} %"));
    ensure!((share - percent).abs() <= points, "{what} got {share:.1} %");
    Ok(())
}

fn weights_share_fair(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let light = Cgroup::new("light")?;
    let heavy = Cgroup::new("heavy")?;
    heavy.set("cpu.weight", "300")?;
    for (in_light, in_heavy) in [(1, 1), (4, 1), (2, 8)] {
        // As many CPUs for each group as it can use.
        let in_light = in_light * bench.cpus();
        let in_heavy = in_heavy * bench.cpus();
        let hogs = (hogs_in(&light, in_light)?, hogs_in(&heavy, in_heavy)?);
        sleep(ms(500));
        let before = (light.cpu_time()?, heavy.cpu_time()?);
        // Many turns: one that is cut off at either end is a quarter of a point in 4 s.
        sleep(ms(7000));
        let used = (light.cpu_time()? - before.0, heavy.cpu_time()? - before.1);
        let what = format!("{in_heavy} hogs of weight 300 beside {in_light} of 100");
        // 1:3 within 5 %: 75 % give or take 0.95 points. On a single CPU the heavy group runs for
        // 300 ms in one go, uses more of its due by 72 ms than its bucket of tokens holds with so
        // small an S (19 ms), and pays for that (docs/reliability.md): 71.9 to 74.0 % were seen.
        let off = if bench.cpus() == 1 { 3.5 } else { 0.95 };
        expect_share(bench, &what, used.1, used.0 + used.1, 75.0, off)?;
        drop(hogs);
    }
    scheduler.finish()
}

/// Makes a chain of groups below each other, `depth` of them below `top`, with the CPU
/// controller in each.
fn nest(top: &str, depth: usize) -> Result<Vec<Cgroup>> {
    let mut nested = vec![Cgroup::new(top)?];
    for level in 1..=depth {
        nested[level - 1].set("cgroup.subtree_control", "+cpu")?;
        nested.push(Cgroup::new(&format!("{top}{}", "/n".repeat(level)))?);
    }
    Ok(nested)
}

fn nesting_gains_no_weight(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let beside = Cgroup::new("beside")?;
    let others = hogs_in(&beside, bench.cpus())?;
    for depth in [9, 40] {
        let nested = nest("top", depth)?;
        for group in &nested[1..] {
            group.set("cpu.weight", "10000")?;
        }
        let hogs = hogs_in(&nested[depth], bench.cpus())?;
        sleep(ms(500));
        let share = used_in(&nested[0], ms(3000))?;
        let machine = bench.cpus() as u32 * ms(3000);
        let what = format!("{depth} groups down, each but the outermost of weight 10000");
        expect_share(bench, &what, share, machine, 50.0, 2.0)?;
        drop(hogs);
    }
    drop(others);
    scheduler.finish()
}

fn weights_share_level_by_level(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let top = Cgroup::new("top")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    let (one, two) = (Cgroup::new("top/one")?, Cgroup::new("top/two")?);
    let beside = Cgroup::new("beside")?;
    let hogs = [&one, &two, &beside].map(|group| hogs_in(group, bench.cpus()));
    let hogs = hogs.into_iter().collect::<Result<Vec<_>>>()?;
    let machine = bench.cpus() as u32 * ms(3000);
    sleep(ms(500));
    let share = used_in(&one, ms(3000))?;
    expect_share(
        bench,
        "one of two below one of two",
        share,
        machine,
        25.0,
        2.0,
    )?;
    one.set("cpu.weight", "300")?;
    let share = used_in(&one, ms(3000))?;
    expect_share(bench, "with weight 300 there", share, machine, 37.5, 2.0)?;
    drop(hogs);
    scheduler.finish()
}

/// Forks a process in `group` that ends while its parent, the caller, has the CPU to which
/// both are tied: what ends wakes its parent up, and loses the CPU to it. Then it is dead
/// for everybody else, but has not left its group's sums.
fn keep_cpu_of_dying(group: &Cgroup) -> Result<()> {
    pin_self(0);
    set_policy(Pid::from_raw(0), libc::SCHED_FIFO)?;
    let mut last = Process::spawn_in(group, |report| report.burn(ms(30)))?;
    last.wait_for_its_signal()?;
    burn(ms(60));
    Ok(())
}

#[allow(clippy::expect_used, reason = "in a child: a panic is its way to fail")]
fn removed_groups_leave_no_weight(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let top = Cgroup::new("top")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    for number in 0..10 {
        let group = Cgroup::new(&format!("top/{number}"))?;
        group.set("cpu.weight", "10000")?;
        let mut keeper = Process::spawn(|_| keep_cpu_of_dying(&group).expect("cannot keep it"))?;
        wait_until(PATIENCE, || !group.is_empty());
        group.remove()?;
        keeper.wait()?;
    }
    let (inside, beside) = (Cgroup::new("top/inside")?, Cgroup::new("beside")?);
    let hogs = (
        hogs_in(&inside, bench.cpus())?,
        hogs_in(&beside, bench.cpus())?,
    );
    sleep(ms(500));
    let share = used_in(&inside, ms(3000))?;
    let machine = bench.cpus() as u32 * ms(3000);
    expect_share(bench, "one of two equal groups", share, machine, 50.0, 2.0)?;
    drop(hogs);
    scheduler.finish()
}

/// What the loader says on a kernel before 6.17.
pub const NOT_TOLD: &str = "does not tell a scheduler of cpu.max";

/// Loads the scheduler, on a kernel that tells it of quotas.
fn load_with_quotas(bench: &Bench, options: &str) -> Result<Scheduler> {
    let scheduler = bench.load(options)?;
    if scheduler.log().contains(NOT_TOLD) {
        scheduler.finish()?;
        return Err(Skip("this kernel does not tell a scheduler of cpu.max").into());
    }
    Ok(scheduler)
}

fn quota_is_kept_in_fair(bench: &Bench) -> Result<()> {
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

fn quota_is_kept_in_filter(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, "--slice-us 5000000 --no-overload")?;
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

fn quota_holds_for_all_threads_and_levels(bench: &Bench) -> Result<()> {
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

fn quota_holds_at_any_depth(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    for depth in [1, 9, 33, 60] {
        let nested = nest("top", depth)?;
        nested[0].set("cpu.max", "50000 100000")?;
        let hogs = hogs_in(&nested[depth], bench.cpus())?;
        sleep(ms(500));
        let used = used_in(&nested[0], ms(2000))?;
        let what = format!("{depth} groups below it");
        expect_share(bench, &what, used, ms(2000), 50.0, 4.0)?;
        drop(hogs);
    }
    scheduler.finish()
}

fn quotas_of_hundreds_of_groups(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, ALL_FAIR)?;
    // What they may have comes to three quarters of the machine.
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
        // Or each would wait for quota to end, and the next be killed only then.
        group.set("cpu.max", "max")?;
        group.set("cgroup.kill", "1")?;
    }
    drop(hogs);
    let shares = used.iter().zip(&before);
    let shares = shares.map(|(used, before)| (*used - *before).as_secs_f64() / seconds);
    let (least, most) = shares.fold((1.0, 0.0), |(least, most), share| {
        (f64::min(least, share), f64::max(most, share))
    });
    bench.say(format_args!("{least:.4} to {most:.4} of a CPU each"));
    // A turn is as long as a tick, four times the quota, and paid for in the next periods.
    ensure!(least > 0.005 && most < 0.013, "0.01 would be right");
    scheduler.finish()
}

fn quotas_are_kept_or_nothing_is_loaded(bench: &Bench) -> Result<()> {
    const SENTENCE: &str = "the cgroup limited has a quota (cpu.max), which scx_sfs cannot keep";
    enable_cpu_controller()?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "50000 100000")?;
    let scheduler = match bench.load(ALL_FAIR) {
        Err(error) => {
            let error = format!("{error:#}");
            ensure!(error.contains(SENTENCE), "it is not told: {error}");
            return leaves_when_there_is_a_quota(bench, &group, SENTENCE);
        }
        Ok(scheduler) => scheduler,
    };
    ensure!(
        !scheduler.log().contains(NOT_TOLD),
        "loaded beside a quota that nobody keeps"
    );
    let hog = hogs_in(&group, 1)?;
    sleep(ms(200));
    let used = used_in(&group, ms(2000))?;
    expect_share(bench, "a quota of before", used, ms(2000), 50.0, 3.0)?;
    drop(hog);
    scheduler.finish()
}

/// On a kernel that does not tell of quotas.
fn leaves_when_there_is_a_quota(bench: &Bench, group: &Cgroup, sentence: &str) -> Result<()> {
    let scheduler = bench.load(&format!("{ALL_FAIR} --ignore-quotas"))?;
    scheduler.finish()?;
    group.set("cpu.max", "max")?;
    let mut scheduler = bench.load(ALL_FAIR)?;
    group.set("cpu.max", "50000 100000")?;
    wait_until(PATIENCE, || !scheduler.is_alive());
    let (status, log) = scheduler.wait_for_end()?;
    bench.say(format_args!("{status}"));
    ensure!(log.contains(sentence), "it is not told: {log}");
    ensure!(status.code() == Some(1), "{status}");
    Ok(())
}

fn groups_without_room_are_refused(bench: &Bench) -> Result<()> {
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
            Ok(_) => bail!("more groups than there is room for"),
            Err(error) => break format!("{error:#}"),
        }
    };
    bench.say(format_args!("after {} groups: {refused}", groups.len()));
    ensure!(
        refused.contains("No space left"),
        "refused for another reason: {refused}"
    );
    // Those that are there live on, and one that goes makes room.
    let last = groups.pop().context("there was no room at all")?;
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
    ensure!(made, "a group that has gone has left no room");
    scheduler.finish()?;

    for number in groups.len()..2 * ROOM {
        groups.push(Cgroup::new(&format!("crowded/{number}-more"))?);
    }
    let Err(error) = bench.load(&options) else {
        bail!("loaded beside more groups than there is room for");
    };
    let error = format!("{error:#}");
    bench.say(&error);
    ensure!(
        error.contains("give --max-cgroups a larger number"),
        "{error}"
    );
    Ok(())
}

fn lifted_quota_lets_go(bench: &Bench) -> Result<()> {
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
        "moving it has not helped"
    );
    ensure!(hogs[1].cpu() == waiting.1, "the other runs as well");
    group.set("cpu.max", "max")?;
    sleep(ms(100));
    // They may share one CPU now.
    ensure!(hogs[1].cpu() - waiting.1 > ms(30), "lifting has not helped");
    drop(hogs);
    scheduler.finish()
}

fn quota_does_not_prolong_overload(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = load_with_quotas(bench, "--slice-us 10000")?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "1000 100000")?;
    // A wait of 22 s for quota with 4 CPUs, far from the end of their credit.
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
        "none waits"
    );
    group.set("cpu.max", "max")?;
    drop(waiting);
    scheduler.finish()
}

/// Returns the longest of 100 writes of a byte to a file, which another process writes in
/// pieces of 4 MiB, in a group with a twentieth of a CPU. Each write has the file's lock.
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
    std::fs::remove_file(&path).context("cannot remove it")?;
    Ok(longest)
}

fn quota_holds_nobody_inside_the_kernel(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let group = Cgroup::new("limited")?;
    group.set("cpu.max", "5000 100000")?;
    let base = longest_write_beside(&group)?;
    bench.say(format_args!("EEVDF: {base:?}"));
    for options in [ALL_FAIR, "--slice-us 5000000 --no-overload"] {
        let scheduler = load_with_quotas(bench, options)?;
        let longest = longest_write_beside(&group)?;
        // A tick is 4 ms. Before 6.18 EEVDF holds a task back wherever it is, and so do we.
        bench.at_most(options, longest, base * 3 / 2 + ms(8))?;
        scheduler.finish()?;
    }
    Ok(())
}

fn quota_leaves_others_alone(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load("--slice-us 50000 --no-overload")?;
    let group = Cgroup::new("limited")?;
    let hogs = hogs_in(&group, 4 * bench.cpus())?;
    // With credit they would go before the short one where they have come before it.
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

fn idle_and_uclamp_break_nothing(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let (one, two) = (Cgroup::new("one")?, Cgroup::new("two")?);
    if one.set("cpu.uclamp.max", "10.00").is_err() {
        bench.say("this kernel has no cpu.uclamp");
    } else {
        one.set("cpu.uclamp.min", "5.00")?;
        one.set("cpu.uclamp.max", "max")?;
        two.set("cpu.uclamp.max", "20.00")?;
    }
    let hogs = [&one, &two].map(|group| hogs_in(group, bench.cpus()));
    let hogs = hogs.into_iter().collect::<Result<Vec<_>>>()?;
    let machine = bench.cpus() as u32 * ms(2000);
    for idle in ["1", "0"] {
        one.set("cpu.idle", idle)?;
        sleep(ms(500));
        let before = (one.cpu_time()?, two.cpu_time()?);
        sleep(ms(2000));
        let used = (one.cpu_time()? - before.0, two.cpu_time()? - before.1);
        bench.say(format_args!(
            "cpu.idle {idle}: {:?} and {:?}",
            used.0, used.1
        ));
        ensure!(!used.0.is_zero(), "nothing is left for the idle group");
        ensure!(used.0 + used.1 > machine * 9 / 10, "CPUs are left idle");
    }
    expect_equal_shares(bench, [&one, &two], machine)?;
    drop(hogs);
    scheduler.finish()
}

/// Expects that each of two groups gets half of the machine.
fn expect_equal_shares(bench: &Bench, groups: [&Cgroup; 2], machine: Duration) -> Result<()> {
    let before = groups[0].cpu_time()?;
    sleep(ms(2000));
    let used = groups[0].cpu_time()? - before;
    expect_share(bench, "one of two", used, machine, 50.0, 3.0)
}
