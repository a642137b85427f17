//! Tenants: one that cheats beside an honest one, in groups of equal weight.
//! Neither gets more than its share, whatever event begins an invocation.

use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Result};

use sfs_tenants::matches::{play, Outcome};
use sfs_tenants::tenant::{self, Strategy};
use sfs_testbed::case::{Bench, Case};
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{ms, sleep};
use sfs_testbed::process::{fork_every, Process};
use sfs_testbed::scheduler::{output_of, Scheduler};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "own_connections_gain_nothing",
        about: "a tenant that accepts its own connections gets only its share",
        run: own_connections_gain_nothing,
    },
    Case {
        name: "an_accept_in_vain_gains_nothing",
        about: "a tenant whose accept() finds no connection keeps no rank by that",
        run: an_accept_in_vain_gains_nothing,
    },
    Case {
        name: "own_children_gain_nothing",
        about: "a tenant whose work moves from child to child gets only its share",
        run: own_children_gain_nothing,
    },
    Case {
        name: "own_threads_gain_nothing",
        about: "--unit thread: the same with threads",
        run: own_threads_gain_nothing,
    },
    Case {
        name: "own_messages_and_sleeps_gain_nothing",
        about: "a tenant that sends itself messages, or sleeps now and then, gets only its share",
        run: own_messages_and_sleeps_gain_nothing,
    },
    Case {
        name: "exec_gains_nothing",
        about: "a tenant that calls exec all the time gets only its share",
        run: exec_gains_nothing,
    },
    Case {
        name: "own_groups_gain_nothing",
        about: "a tenant that makes groups below its own gets only its share, with and without --cgroup",
        run: own_groups_gain_nothing,
    },
    Case {
        name: "own_nice_values_gain_nothing",
        about:
            "a tenant with some 200 tasks that keep changing their nice values gets only its share",
        run: own_nice_values_gain_nothing,
    },
    Case {
        name: "system_calls_gain_nothing",
        about: "a tenant that is always inside the kernel, and leaves it first, gets only its share",
        run: system_calls_gain_nothing,
    },
    Case {
        name: "arrivals_wait_for_no_system_calls",
        about: "beside processes that are always inside the kernel, a short one is served at once",
        run: arrivals_wait_for_no_system_calls,
    },
    Case {
        name: "many_tasks_gain_nothing",
        about:
            "a tenant with 64 or some 200 tasks gets the share of one with as many tasks as CPUs",
        run: many_tasks_gain_nothing,
    },
    Case {
        name: "tiny_invocations_press_s_down_by_half",
        about: "a tenant with thousands of invocations a second reduces S at most by half",
        run: tiny_invocations_press_s_down_by_half,
    },
    Case {
        name: "tenants_share_no_names",
        about:
            "programs of the same name are one function within a tenant, and separate between tenants",
        run: tenants_share_no_names,
    },
    Case {
        name: "a_flood_of_names_has_bounds",
        about: "thousands of function names of one tenant do not displace other tenants' functions",
        run: a_flood_of_names_has_bounds,
    },
];

/// Limit of a tenant's share of the CPU time of both: 5 % over its half.
const MOST: f64 = 0.525;

/// Returns the minimum share of all CPU time that both tenants must have
/// together; with less, some was wasted. Kernel threads take the rest, mainly
/// those that free removed groups. On eight CPUs they take more: 4.7 % under
/// EEVDF, up to 7.6 % under scx_sfs, where the tenant that makes groups has
/// more CPU time for it.
fn least_used(cpus: usize) -> f64 {
    if cpus > 4 {
        0.91
    } else {
        0.93
    }
}

/// The attacker's plan in a match, and the options of scx_sfs.
struct Match {
    strategy: &'static str,
    options: &'static str,
}

/// Plays all matches; fails if a tenant gets more than its share in one.
fn expect_shares(bench: &Bench, all: &[Match]) -> Result<()> {
    bench.needs_two_cpus()?;
    let mut unfair = 0;
    for one in all {
        let Outcome {
            share,
            of_all,
            in_debt,
        } = play(bench, one.strategy, one.options)?;
        let held = (1.0 - MOST..=MOST).contains(&share) && of_all >= least_used(bench.cpus());
        unfair += u32::from(!held);
        bench.say(format_args!(
            "{} {:5.1} % for \"{}\" ({}), {:.1} % of the machine, {in_debt} times in debt",
            if held { "  " } else { "! " },
            100.0 * share,
            one.strategy,
            one.options,
            100.0 * of_all
        ));
    }
    ensure!(unfair == 0, "{unfair} matches are unfair");
    Ok(())
}

fn own_connections_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "4 burn:50000 accept",
                options: "--policy sfs --cgroup fn/*",
            },
            Match {
                strategy: "4 burn:1000 accept",
                options: "--policy sfs --cgroup fn/*",
            },
            Match {
                strategy: "4 burn:50000 accept",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "4 burn:10000 accept",
                options: "--policy sfs --boundary accept,fork",
            },
            Match {
                strategy: "8 burn:20000 accept",
                options: "--policy sfs --cgroup fn/* --unit cgroup",
            },
        ],
    )
}

fn an_accept_in_vain_gains_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "4 accept-in-vain burn:10000000",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "4 burn:30000 accept-in-vain",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "4 burn:30000 accept-in-vain",
                options: "--policy sfs --cgroup fn/*",
            },
        ],
    )
}

fn own_children_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "4 burn:10000 fork",
                options: "--policy sfs",
            },
            Match {
                strategy: "4 burn:10000 fork",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "8 burn:40000 fork",
                options: "--policy sfs --cgroup fn/*",
            },
        ],
    )
}

fn own_threads_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "4 burn:10000 thread",
                options: "--policy sfs --unit thread",
            },
            Match {
                strategy: "4 burn:10000 thread",
                options: "--policy learned --unit thread --cgroup fn/*",
            },
        ],
    )
}

fn own_messages_and_sleeps_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "8 burn:10000 receive",
                options: "--policy sfs --cgroup fn/* --boundary receive",
            },
            Match {
                strategy: "12 burn:20000 sleep:11000",
                options: "--policy sfs --cgroup fn/* --boundary idle --idle-boundary-ms 10",
            },
            Match {
                strategy: "12 burn:3000 sleep:1000",
                options: "--policy sfs",
            },
        ],
    )
}

fn exec_gains_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[Match {
            strategy: "6 burn:20000 exec",
            options: "--policy sfs --boundary exec --cgroup fn/*",
        }],
    )
}

fn own_groups_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "6 burn:20000 group",
                options: "--policy sfs --cgroup fn/*",
            },
            Match {
                strategy: "6 burn:20000 group fork",
                options: "--policy sfs --cgroup fn/* --cgroup fn/*/*",
            },
            Match {
                strategy: "6 burn:20000 group fork",
                options: "--policy sfs",
            },
        ],
    )
}

/// Each change queues a running task and lets it continue: virtual time must
/// not advance to that task's place at the end of its tenant's queue.
fn own_nice_values_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "12 multiply multiply burn:500 nice:1 burn:500 nice:0",
                options: "--policy sfs --cgroup fn/*",
            },
            Match {
                strategy: "12 multiply multiply burn:500 nice:1 burn:500 nice:0",
                options: "--policy learned",
            },
        ],
    )
}

/// A task that is preempted inside the kernel has one more turn at once, to leave it.
fn system_calls_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "4 call:20000 accept",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "16 call:1000 accept",
                options: "--policy learned --cgroup fn/*",
            },
            Match {
                strategy: "4 call:10000 fork",
                options: "--policy learned",
            },
            Match {
                strategy: "8 call:5000 sleep:1000",
                options: "--policy sfs --cgroup fn/*",
            },
        ],
    )
}

fn arrivals_wait_for_no_system_calls(bench: &Bench) -> Result<()> {
    let plan: Strategy = "1 call:1000000".parse()?;
    let scheduler = bench.load("--policy learned --slice-us 20000 --no-overload")?;
    fork_every(ms(2), 150)?;
    scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
    let long = (0..2 * bench.cpus()).map(|_| Process::spawn(|_| tenant::play(&plan, 0)));
    let long = long.collect::<Result<Vec<_>>>()?;
    sleep(ms(300));
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        let mut short = Process::burner(ms(2))?;
        short.wait()?;
        longest = longest.max(short.turnaround());
        sleep(ms(11));
    }
    drop(long);
    // Its own 2 ms and those of its fork, a turn to leave the kernel, to the next tick.
    bench.at_most("the longest turnaround of 40 short ones", longest, ms(16))?;
    scheduler.finish()
}

fn many_tasks_gain_nothing(bench: &Bench) -> Result<()> {
    expect_shares(
        bench,
        &[
            Match {
                strategy: "64 burn:10000 accept",
                options: "--policy sfs --cgroup fn/*",
            },
            Match {
                strategy: "16 burn:10000 multiply accept",
                options: "--policy learned --cgroup fn/*",
            },
            // Found by the search: 208 processes that only run, and some that sleep.
            Match {
                strategy: "12 multiply multiply + 4 sleep:20 burn:9134 thread",
                options: "--policy sfs --cgroup fn/*",
            },
        ],
    )
}

/// Makes the parent of the tenants' groups.
fn tenants() -> Result<Cgroup> {
    enable_cpu_controller()?;
    let all = Cgroup::new("fn")?;
    all.set("cgroup.subtree_control", "+cpu")?;
    Ok(all)
}

/// S is the number of CPUs times the mean time between arrivals in a window of
/// 100. One tenant has at most half of a window, so the others' arrivals span
/// at least half their usual time.
fn tiny_invocations_press_s_down_by_half(bench: &Bench) -> Result<()> {
    const EVERY: Duration = ms(15);
    let _all = tenants()?;
    let (bad, good) = (Cgroup::new("fn/bad")?, Cgroup::new("fn/good")?);
    let scheduler = bench.load("--policy sfs --cgroup fn/* --no-overload --iat-window 100")?;
    scheduler.wait_for("the tenants", |stats| stats.sandboxes == 2)?;
    let honest = Process::spawn_in(&good, |_| {
        // Its children are in its group.
        let _ = fork_every(EVERY, 1000);
    })?;
    sleep(ms(2500));
    let before = scheduler.stats()?;
    let tiny: Strategy = "1 burn:20 accept".parse()?;
    let tiny = Process::spawn_in(&bad, |_| tenant::play(&tiny, 0))?;
    sleep(ms(2500));
    let after = scheduler.stats()?;
    drop((honest, tiny));
    let accepted = after.begun_by_accept - before.begun_by_accept;
    bench.say(format_args!(
        "S = {} us, and {} us beside {accepted} tiny invocations",
        before.slice_us, after.slice_us
    ));
    ensure!(accepted > 2500, "only {accepted} tiny invocations");
    let due = (EVERY * bench.cpus() as u32).as_micros() as u64;
    ensure!(
        after.slice_us * 100 >= due * 45,
        "S is less than half of {due} us"
    );
    scheduler.finish()
}

/// Runs a process in `group`; returns how many functions are known afterwards.
fn functions_after(scheduler: &Scheduler, group: &Cgroup) -> Result<u64> {
    // The first may run before its sandbox is known.
    for _ in 0..2 {
        Process::spawn_in(group, |report| {
            sleep(ms(20));
            report.burn(ms(1));
        })?
        .wait()?;
    }
    // The loader reads completions that are too few to wake it up once a second.
    sleep(ms(1500));
    Ok(scheduler.stats()?.functions)
}

fn tenants_share_no_names(bench: &Bench) -> Result<()> {
    for options in ["", " --cgroup fn/*"] {
        let _all = tenants()?;
        let options = format!("--policy learned --identity comm{options}");
        let scheduler = bench.load(&options)?;
        let groups = ["fn/one-1", "fn/one-2", "fn/two"];
        let mut known = Vec::new();
        for path in groups {
            let group = Cgroup::new(path)?;
            sleep(ms(100));
            known.push(functions_after(&scheduler, &group)?);
        }
        bench.say(format_args!(
            "{options}: {known:?} functions after {groups:?}"
        ));
        ensure!(known[0] > 0, "nothing was learned");
        ensure!(
            known[1] == known[0],
            "two sandboxes of one tenant share no function"
        );
        ensure!(known[2] == known[1] + 1, "two tenants share a function");
        scheduler.finish()?;
    }
    Ok(())
}

fn a_flood_of_names_has_bounds(bench: &Bench) -> Result<()> {
    /// The limit of one tenant in intf.h and share.bpf.h, and a few more.
    const MOST: u64 = 4096 + 16;
    let _all = tenants()?;
    let (bad, good) = (Cgroup::new("fn/bad")?, Cgroup::new("fn/good")?);
    let scheduler = bench.load("--policy learned")?;
    functions_after(&scheduler, &good)?;
    let flood: Strategy = "1 burn:250 rename accept".parse()?;
    let flood = Process::spawn_in(&bad, |_| tenant::play(&flood, 0))?;
    scheduler.wait_for("the flood", |stats| stats.begun_by_accept > 6000)?;
    drop(flood);
    sleep(ms(1500));
    // A flood of invocations, more than are used for learning.
    let flood: Strategy = "1 burn:5 accept".parse()?;
    let flood = bench.each_cpu(|_| Process::spawn_in(&bad, |_| tenant::play(&flood, 0)))?;
    sleep(ms(2500));
    drop(flood);
    sleep(ms(1500));
    let stats = scheduler.stats()?;
    bench.say(format_args!(
        "{} invocations, {} functions, {} not learned from, {} reports lost",
        stats.begun_by_accept, stats.functions, stats.unlearned, stats.lost_events
    ));
    ensure!(
        stats.unlearned > 0,
        "all invocations were used for learning"
    );
    ensure!(stats.lost_events == 0, "others' reports are lost");
    ensure!(stats.functions > 1000, "the flood has few names");
    ensure!(stats.functions <= MOST, "{} functions", stats.functions);
    let listed = output_of(Command::new(bench.program()).args(["functions", "-n", "5"]))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    ensure!(
        listed.lines().count() > 5,
        "few functions are listed: {listed}"
    );
    scheduler.finish()
}
