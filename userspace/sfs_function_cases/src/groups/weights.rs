//! cpu.weight, cpu.idle and cpu.uclamp.

use std::time::Duration;

use anyhow::{ensure, Result};
use nix::unistd::Pid;

use sfs_testbed::case::Bench;
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{burn, ms, now, sleep, sleep_until, wait_until, PATIENCE};
use sfs_testbed::process::{as_real_time, pin_self, set_policy, wait_for_all, Process};

use super::shares::{expect_share, hogs_in, nest, used_in, ALL_FAIR};

pub(super) fn weights_share_fair(bench: &Bench) -> Result<()> {
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
        // Many turns: a turn cut off at either end changes the share by a quarter of a point in 4 s.
        sleep(ms(7000));
        let used = (light.cpu_time()? - before.0, heavy.cpu_time()? - before.1);
        let what = format!("{in_heavy} hogs of weight 300 beside {in_light} of 100");
        // 1:3 within 5 %: 75 % +- 0.95 points. On a single CPU the heavy group
        // runs for 300 ms without a break. This exceeds its due by 72 ms more
        // than its token bucket holds with so small an S (19 ms), and the group
        // pays for it (docs/reliability.md): 71.9 to 74.0 % were seen.
        let off = if bench.cpus() == 1 { 3.5 } else { 0.95 };
        expect_share(bench, &what, used.1, used.0 + used.1, 75.0, off)?;
        drop(hogs);
    }
    scheduler.finish()
}

pub(super) fn nesting_gains_no_weight(bench: &Bench) -> Result<()> {
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
        let what = format!("{depth} groups deep, all but the outermost with weight 10000");
        expect_share(bench, &what, share, machine, 50.0, 2.0)?;
        drop(hogs);
    }
    drop(others);
    scheduler.finish()
}

pub(super) fn weights_share_level_by_level(bench: &Bench) -> Result<()> {
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

/// Equal functions of two groups arrive by turns, all at once. By rank they would end in the order
/// of arrival. The lighter group is in debt first, and then behind the other (docs/tenants.md).
pub(super) fn weights_order_functions(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    enable_cpu_controller()?;
    let [above, one, other] = ["ranked", "ranked/one", "ranked/other"].map(Cgroup::new);
    let (above, one, other) = (above?, one?, other?);
    above.set("cgroup.subtree_control", "+cpu")?;
    let scheduler = bench.load("--policy learned --cgroup ranked/*")?;
    for _ in 0..10 {
        wait_for_all(&mut [work_in(&one)?, work_in(&other)?])?;
    }
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 1)?;
    for (weight, at_least, at_most) in [("100", 0.7, 1.4), ("400", 1.8, 9.0), ("25", 0.0, 0.65)] {
        one.set("cpu.weight", weight)?;
        // What one of them has had too much of, it is due again (docs/tenants.md).
        sleep(ms(500));
        let [of_one, of_other] = burst_in(bench, &above, [&one, &other])?;
        let ratio = of_other / of_one;
        bench.say(format_args!(
            "weights {weight} and 100: mean turnarounds {:.1} and {:.1} ms, ratio {ratio:.2}",
            1e3 * of_one,
            1e3 * of_other
        ));
        ensure!(
            (at_least..=at_most).contains(&ratio),
            "the ratio should be {at_least} to {at_most}"
        );
    }
    scheduler.finish()
}

fn work_in(group: &Cgroup) -> Result<Process> {
    Process::spawn_in(group, |report| report.burn(ms(20)))
}

/// Returns the mean turnarounds, in seconds, of eight processes for each CPU in each of two groups
/// below `above`. They begin together, frozen until all are there: on many CPUs the first would have
/// ended before the last is forked.
fn burst_in(bench: &Bench, above: &Cgroup, groups: [&Cgroup; 2]) -> Result<[f64; 2]> {
    above.set("cgroup.freeze", "1")?;
    let pairs = (0..8 * bench.cpus()).map(|_| Ok((work_in(groups[0])?, work_in(groups[1])?)));
    let pairs = pairs.collect::<Result<Vec<_>>>();
    let start = now();
    above.set("cgroup.freeze", "0")?;
    let (mut of_one, mut of_other): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    wait_for_all(&mut of_one)?;
    wait_for_all(&mut of_other)?;
    let mean = |all: &[Process]| {
        let ends = all.iter().filter_map(|process| process.ended());
        let sum: Duration = ends.map(|end| end - start).sum();
        sum.as_secs_f64() / all.len() as f64
    };
    Ok([mean(&of_one), mean(&of_other)])
}

/// Hogs of a light tenant get into debt with most of their credit unused, and then all wait: only the
/// passing of time pays the debt.
pub(super) fn light_tenants_debt_is_paid(bench: &Bench) -> Result<()> {
    enable_cpu_controller()?;
    let scheduler = bench.load_sfs("--slice-us 50000 --no-overload")?;
    let light = Cgroup::new("light")?;
    light.set("cpu.weight", "30")?;
    // They get into debt and out of it all the time, so that debts are looked at.
    let heavy = ["200", "300", "400"].map(|weight| -> Result<_> {
        let group = Cgroup::new(&format!("heavy{weight}"))?;
        group.set("cpu.weight", weight)?;
        let hogs = hogs_in(&group, 2 * bench.cpus())?;
        Ok((group, hogs))
    });
    let heavy = heavy.into_iter().collect::<Result<Vec<_>>>()?;
    sleep(ms(500));
    let start = now() + ms(500);
    let hog_in_light = |_| {
        Process::spawn_in(&light, |_| {
            sleep_until(start);
            burn(ms(60_000));
        })
    };
    let hogs: Vec<_> = as_real_time(|| {
        (0..6 * bench.cpus())
            .map(hog_in_light)
            .collect::<Result<_>>()
    })?;
    sleep_until(start);
    sleep(ms(500));
    let share = used_in(&light, ms(4000))?;
    let machine = bench.cpus() as u32 * ms(4000);
    let what = "a tenant with a thirtieth of all weight";
    expect_share(bench, what, share, machine, 3.2, 1.6)?;
    drop((hogs, heavy));
    scheduler.finish()
}

/// Forks a process in `group` that ends while the caller, its parent, has the CPU to which both
/// are pinned: the ending process wakes its parent up and loses the CPU to it. It is dead then,
/// but still in its group's sums.
fn keep_cpu_of_dying(group: &Cgroup) -> Result<()> {
    pin_self(0);
    set_policy(Pid::from_raw(0), libc::SCHED_FIFO)?;
    let mut last = Process::spawn_in(group, |report| report.burn(ms(30)))?;
    last.wait_for_its_signal()?;
    burn(ms(60));
    Ok(())
}

#[allow(clippy::expect_used, reason = "in a child: a panic is its way to fail")]
pub(super) fn removed_groups_leave_no_weight(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    enable_cpu_controller()?;
    let scheduler = bench.load(ALL_FAIR)?;
    let top = Cgroup::new("top")?;
    top.set("cgroup.subtree_control", "+cpu")?;
    for number in 0..10 {
        let group = Cgroup::new(&format!("top/{number}"))?;
        group.set("cpu.weight", "10000")?;
        let mut keeper =
            Process::spawn(|_| keep_cpu_of_dying(&group).expect("cannot keep the CPU"))?;
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

pub(super) fn idle_and_uclamp_break_nothing(bench: &Bench) -> Result<()> {
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
        ensure!(!used.0.is_zero(), "the idle group gets nothing");
        ensure!(used.0 + used.1 > machine * 9 / 10, "CPUs are left idle");
    }
    expect_equal_shares(bench, [&one, &two], machine)?;
    drop(hogs);
    scheduler.finish()
}

/// Expects that the first of two groups gets half of the machine.
fn expect_equal_shares(bench: &Bench, groups: [&Cgroup; 2], machine: Duration) -> Result<()> {
    let before = groups[0].cpu_time()?;
    sleep(ms(2000));
    let used = groups[0].cpu_time()? - before;
    expect_share(bench, "one of two", used, machine, 50.0, 3.0)
}
