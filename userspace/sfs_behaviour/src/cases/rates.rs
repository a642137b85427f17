//! Rates of what does little but wake up and switch. sched_ext costs something there, under
//! any scheduler (docs/parity.md has the peers); these cases keep that from growing.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::{ensure, Result};

use crate::case::{Bench, Case};
use crate::kinds::{self, MEASURED};
use crate::process::{wait_for_all, Process};

pub const CASES: &[Case] = &[
    Case {
        name: "handoffs_keep_their_rate",
        about: "two processes that wait for each other, and as many such pairs as CPUs",
        run: handoffs_keep_their_rate,
    },
    Case {
        name: "yields_keep_their_rate",
        about: "processes that do nothing but yield, of one nice value and of twenty, or take a semaphore in turns",
        run: yields_keep_their_rate,
    },
    Case {
        name: "naps_keep_their_rate",
        about: "four processes for each CPU that do nothing but sleep for 50 us",
        run: naps_keep_their_rate,
    },
    Case {
        name: "streams_keep_their_rate",
        about: "pipes with one writer and four readers, and pipes that another process copies",
        run: streams_keep_their_rate,
    },
    Case {
        name: "births_keep_their_rate",
        about: "processes that start threads, or others by vfork, and wait for their end",
        run: births_keep_their_rate,
    },
    Case {
        name: "changes_keep_their_rate",
        about: "processes that go from CPU to CPU, stop and continue others, or wake up one on each CPU",
        run: changes_keep_their_rate,
    },
];

/// Work whose rate is measured.
struct Row<'a> {
    what: &'a str,
    /// Starts it.
    start: &'a dyn Fn() -> Result<Vec<Process>>,
    /// The least part of EEVDF's rate: on a single CPU, on two to four, and on more. On a
    /// single one a handoff is a switch of tasks; there the callbacks, some 15 us in the
    /// emulator, weigh more than where a CPU has to be woken up. On eight, tasks that do
    /// nothing but switch wait for the locks of the shared queues: their rate stays what
    /// it is on four, and EEVDF's, which has a queue for each CPU, grows.
    least: [f64; 3],
}

fn handoffs_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[
            Row {
                what: "pair with sockets",
                start: &|| kinds::socket_pairs(1),
                least: [0.55, 0.75, 0.7],
            },
            Row {
                what: "pairs with sockets",
                start: &|| kinds::socket_pairs(all),
                least: [0.55, 0.68, 0.6],
            },
            Row {
                what: "pairs with futexes",
                start: &|| kinds::futex_pairs(all),
                least: [0.6, 0.5, 0.5],
            },
            Row {
                what: "pairs with eventfds",
                start: &|| kinds::eventfd_pairs(all),
                least: [0.63, 0.55, 0.52],
            },
        ],
    )
}

fn yields_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[
            Row {
                what: "that yield",
                start: &|| kinds::yielders(2 * all),
                least: [0.4, 0.2, 0.2],
            },
            Row {
                what: "of different nice values that yield",
                start: &|| kinds::nice_yielders(20),
                least: [0.45, 0.26, 0.13],
            },
            Row {
                what: "with a semaphore",
                start: &|| kinds::posters(2 * all),
                least: [0.4, 0.3, 0.28],
            },
        ],
    )
}

fn naps_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[Row {
            what: "that nap",
            start: &|| kinds::nappers(4 * all),
            least: [0.85, 0.58, 0.45],
        }],
    )
}

fn streams_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[
            Row {
                what: "with four readers each",
                start: &|| kinds::streams(all),
                least: [0.78, 0.7, 0.4],
            },
            Row {
                what: "copied",
                start: &|| kinds::copied_streams(all),
                least: [0.88, 0.75, 0.7],
            },
        ],
    )
}

fn births_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[
            Row {
                what: "that start threads",
                start: &|| kinds::joiners(all),
                least: [0.75, 0.75, 0.75],
            },
            Row {
                what: "that start others by vfork",
                start: &|| kinds::vforkers(all),
                least: [0.78, 0.67, 0.67],
            },
        ],
    )
}

fn changes_keep_their_rate(bench: &Bench) -> Result<()> {
    let all = most(bench);
    keep_rate(
        bench,
        &[
            Row {
                what: "from CPU to CPU",
                start: &|| kinds::wanderers(all, all),
                least: [0.88, 0.64, 0.64],
            },
            Row {
                what: "that stop and continue others",
                start: &|| kinds::stoppers(all),
                least: [0.44, 0.6, 0.6],
            },
            Row {
                what: "that wakes up one on each CPU",
                start: &|| kinds::pinned_wakers(1, all),
                least: [0.6, 0.65, 0.65],
            },
        ],
    )
}

/// Returns how many CPUs are to have work: all, as long as the emulator can follow.
fn most(bench: &Bench) -> usize {
    bench.cpus().min(8)
}

/// Returns which of a row's gates a machine has.
fn size_of(bench: &Bench) -> usize {
    match bench.cpus() {
        1 => 0,
        2..=4 => 1,
        _ => 2,
    }
}

/// Measures how often each of `rows` gets through its work in a second, under EEVDF and then
/// under scx_sfs, and checks that the second is at least its part of the first.
fn keep_rate(bench: &Bench, rows: &[Row]) -> Result<()> {
    let rates = || rows.iter().map(|row| rate_of((row.start)()?));
    let base = rates().collect::<Result<Vec<_>>>()?;
    let scheduler = bench.load("")?;
    let ours = rates().collect::<Result<Vec<_>>>()?;
    let mut slow = Vec::new();
    for ((base, ours), Row { what, least, .. }) in base.iter().zip(&ours).zip(rows) {
        let (part, least) = (ours / base, least[size_of(bench)]);
        bench.say(format_args!(
            "{what}: EEVDF {base:.0} a second, scx_sfs {ours:.0}, {part:.2} (at least {least})"
        ));
        if part < least {
            slow.push(*what);
        }
    }
    scheduler.finish()?;
    ensure!(slow.is_empty(), "too slow: {}", slow.join(", "));
    Ok(())
}

/// Returns how often a second they report, until they end.
fn rate_of(mut processes: Vec<Process>) -> Result<f64> {
    wait_for_all(&mut processes)?;
    let times: u64 = processes.iter().map(|one| one.value.load(Relaxed)).sum();
    Ok(times as f64 / MEASURED.as_secs_f64())
}
