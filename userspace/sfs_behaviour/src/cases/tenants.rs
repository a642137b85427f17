//! Tenants: one that cheats beside an honest one, in groups of equal weight. Neither gets
//! more than its share, whatever the scheduler takes for an invocation.

use anyhow::{ensure, Result};

use crate::case::{Bench, Case};
use crate::matches::{play, Outcome};

pub const CASES: &[Case] = &[
    Case {
        name: "own_connections_gain_nothing",
        about: "a tenant that accepts its own connections gets its share, no more",
        run: own_connections_gain_nothing,
    },
    Case {
        name: "an_accept_in_vain_gains_nothing",
        about: "a tenant that accepts nothing once keeps no rank by that",
        run: an_accept_in_vain_gains_nothing,
    },
    Case {
        name: "own_children_gain_nothing",
        about: "a tenant whose work moves from child to child gets its share",
        run: own_children_gain_nothing,
    },
    Case {
        name: "own_threads_gain_nothing",
        about: "--unit thread: the same from thread to thread",
        run: own_threads_gain_nothing,
    },
    Case {
        name: "own_messages_and_sleeps_gain_nothing",
        about: "a tenant that sends itself messages, or sleeps now and then, gets its share",
        run: own_messages_and_sleeps_gain_nothing,
    },
    Case {
        name: "exec_gains_nothing",
        about: "a tenant that becomes another program all the time gets its share",
        run: exec_gains_nothing,
    },
    Case {
        name: "own_groups_gain_nothing",
        about: "a tenant that makes groups below its own gets its share, with --cgroup and without",
        run: own_groups_gain_nothing,
    },
    Case {
        name: "many_tasks_gain_nothing",
        about: "a tenant with 64 tasks gets the share of one with as many tasks as CPUs",
        run: many_tasks_gain_nothing,
    },
];

/// Neither may have more than this of what both have: 5 % over its half.
const MOST: f64 = 0.525;

/// Of all CPU time the two must have this much, or some of it was wasted.
const ALL: f64 = 0.93;

/// What the attacker of a match does, and under which options.
struct Match {
    strategy: &'static str,
    options: &'static str,
}

/// Plays all of them; fails if a tenant gets more than its share in one.
fn expect_shares(bench: &Bench, all: &[Match]) -> Result<()> {
    bench.needs_two_cpus()?;
    let mut unfair = 0;
    for one in all {
        let Outcome {
            share,
            of_all,
            in_debt,
        } = play(bench, one.strategy, one.options)?;
        let held = (1.0 - MOST..=MOST).contains(&share) && of_all >= ALL;
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
        ],
    )
}
