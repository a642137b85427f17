//! Rates of work that mostly wakes up and switches. There sched_ext has a cost
//! under any scheduler (docs/parity.md compares some); these cases limit it.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::{ensure, Result};

use crate::kinds::{self, MEASURED};
use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::{now, since};
use sfs_testbed::process::{wait_for_all, Process};

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "handoffs_keep_their_rate",
        about: "rates of handoffs in a pair of processes, and in as many pairs as CPUs, beside EEVDF's",
        run: handoffs_keep_their_rate,
    },
    Case {
        name: "messages_keep_their_rate",
        about: "the rate of messages among ten senders and ten receivers for each CPU, with each policy, beside EEVDF's",
        run: messages_keep_their_rate,
    },
    Case {
        name: "yields_keep_their_rate",
        about: "rates of yields with one nice value and with twenty, and of a shared semaphore, beside EEVDF's",
        run: yields_keep_their_rate,
    },
    Case {
        name: "naps_keep_their_rate",
        about: "the rate of four processes for each CPU that only sleep, for 50 us, beside EEVDF's",
        run: naps_keep_their_rate,
    },
    Case {
        name: "streams_keep_their_rate",
        about: "rates of pipes with one writer and four readers, and of copied pipes, beside EEVDF's",
        run: streams_keep_their_rate,
    },
    Case {
        name: "births_keep_their_rate",
        about: "rates of threads and of vforked processes that start and end, beside EEVDF's",
        run: births_keep_their_rate,
    },
    Case {
        name: "changes_keep_their_rate",
        about: "rates of changes of CPU, of stops and continues, and of wake-ups on every CPU, beside EEVDF's",
        run: changes_keep_their_rate,
    },
];

/// Work whose rate is measured.
struct Row<'a> {
    what: &'a str,
    /// Starts the processes.
    start: &'a dyn Fn() -> Result<Vec<Process>>,
    /// Minimum rate as a fraction of EEVDF's: on a single CPU, on two to four,
    /// and on more. On a single CPU a handoff is only a switch of tasks; the
    /// callbacks, some 15 us on the emulator, weigh more there than where a CPU
    /// must be woken up. On eight CPUs, tasks that only switch wait for the
    /// locks of the shared queues: their rate stays at that of four CPUs, while
    /// EEVDF, which has a queue per CPU, gets faster.
    least: [f64; 3],
    /// A higher rate of EEVDF's, a second, does not raise the gate.
    usual: f64,
}

/// EEVDF has much the same rate on all perturbed machines.
const STEADY: f64 = f64::INFINITY;

/// EEVDF's rates of yields on 4 and 8 CPUs are 284,000 to 785,000 a second, by chance: a task that
/// yields may be picked again. Those of scx_sfs are 130,000 to 169,000.
const USUAL_YIELDS: f64 = 450_000.0;

/// EEVDF's rates of messages are 86,000 to 152,000 a second.
const USUAL_MESSAGES: f64 = 105_000.0;

/// Returns the words for the rates, and whether `ours` is at least the fraction `least` of EEVDF's
/// rate `base`, or of `usual` if that is less.
fn compare(ours: f64, base: f64, usual: f64, least: f64) -> (String, bool) {
    let gate = least * base.min(usual);
    let part = ours / base;
    let words = format!("{ours:.0}, {part:.2} (at least {least}, or {gate:.0} a second)");
    (words, ours >= gate)
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
                usual: STEADY,
            },
            Row {
                what: "pairs with sockets",
                start: &|| kinds::socket_pairs(all),
                least: [0.55, 0.68, 0.6],
                usual: STEADY,
            },
            Row {
                what: "pairs with futexes",
                start: &|| kinds::futex_pairs(all),
                least: [0.6, 0.5, 0.5],
                usual: STEADY,
            },
            Row {
                what: "pairs with eventfds",
                start: &|| kinds::eventfd_pairs(all),
                least: [0.63, 0.55, 0.52],
                usual: STEADY,
            },
        ],
    )
}

/// Receivers run for a short time, and so they count as daemons. If each message preempted its
/// sender, senders and receivers would switch for each message, not for each batch.
fn messages_keep_their_rate(bench: &Bench) -> Result<()> {
    const MESSAGES: usize = 100;
    let rate = || -> Result<f64> {
        let start = now();
        wait_for_all(&mut kinds::message_groups(most(bench), MESSAGES)?)?;
        Ok((most(bench) * 100 * MESSAGES) as f64 / since(start).as_secs_f64())
    };
    let base = rate()?;
    for (options, least) in [
        ("--policy learned", [0.75, 0.95, 0.8]),
        ("--policy sfs", [0.55, 0.9, 0.7]),
        ("--policy fair", [0.8, 0.8, 0.75]),
    ] {
        let least = least[size_of(bench)];
        let scheduler = bench.load(options)?;
        let ours = rate()?;
        scheduler.finish()?;
        let (words, passes) = compare(ours, base, USUAL_MESSAGES, least);
        bench.say(format_args!(
            "messages: EEVDF {base:.0} a second, scx_sfs {options} {words}"
        ));
        ensure!(passes, "too slow with '{options}'");
    }
    Ok(())
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
                usual: USUAL_YIELDS,
            },
            Row {
                what: "of different nice values that yield",
                start: &|| kinds::nice_yielders(20),
                least: [0.45, 0.26, 0.13],
                usual: USUAL_YIELDS,
            },
            Row {
                what: "with a semaphore",
                start: &|| kinds::posters(2 * all),
                least: [0.4, 0.3, 0.28],
                usual: USUAL_YIELDS,
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
            usual: STEADY,
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
                usual: STEADY,
            },
            Row {
                what: "copied",
                start: &|| kinds::copied_streams(all),
                least: [0.88, 0.75, 0.7],
                usual: STEADY,
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
                usual: STEADY,
            },
            Row {
                what: "that start others by vfork",
                start: &|| kinds::vforkers(all),
                least: [0.78, 0.67, 0.67],
                usual: STEADY,
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
                usual: STEADY,
            },
            Row {
                what: "that stop and continue others",
                start: &|| kinds::stoppers(all),
                least: [0.44, 0.6, 0.6],
                usual: STEADY,
            },
            Row {
                what: "that wakes up one on each CPU",
                start: &|| kinds::pinned_wakers(1, all),
                least: [0.6, 0.65, 0.65],
                usual: STEADY,
            },
        ],
    )
}

/// Returns the number of CPUs that get work: all, up to what the emulator can
/// handle.
fn most(bench: &Bench) -> usize {
    bench.cpus().min(8)
}

/// Returns the index of this machine's gate in `Row::least`.
fn size_of(bench: &Bench) -> usize {
    match bench.cpus() {
        1 => 0,
        2..=4 => 1,
        _ => 2,
    }
}

/// Measures the rate of each of `rows` under EEVDF and then under scx_sfs, and
/// checks that the second is at least the row's fraction of the first.
fn keep_rate(bench: &Bench, rows: &[Row]) -> Result<()> {
    let rates = || rows.iter().map(|row| rate_of((row.start)()?));
    let base = rates().collect::<Result<Vec<_>>>()?;
    let scheduler = bench.load_sfs("")?;
    let ours = rates().collect::<Result<Vec<_>>>()?;
    let mut slow = Vec::new();
    for ((base, ours), row) in base.iter().zip(&ours).zip(rows) {
        let what = row.what;
        let (words, passes) = compare(*ours, *base, row.usual, row.least[size_of(bench)]);
        bench.say(format_args!(
            "{what}: EEVDF {base:.0} a second, scx_sfs {words}"
        ));
        if !passes {
            slow.push(what);
        }
    }
    scheduler.finish()?;
    ensure!(slow.is_empty(), "too slow: {}", slow.join(", "));
    Ok(())
}

/// Waits for all processes; returns the steps that they counted per second.
fn rate_of(mut processes: Vec<Process>) -> Result<f64> {
    wait_for_all(&mut processes)?;
    let times: u64 = processes.iter().map(|one| one.value.load(Relaxed)).sum();
    Ok(times as f64 / MEASURED.as_secs_f64())
}
