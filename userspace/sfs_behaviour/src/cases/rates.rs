//! Rates of what does little but wake up and switch. sched_ext costs something there, under
//! any scheduler (docs/parity.md has the peers); these cases keep that from growing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use crate::case::{since, Bench, Case};
use crate::clock::{ms, now, sleep};
use crate::process::{wait_for_all, Process};

pub const CASES: &[Case] = &[
    Case {
        name: "handoffs_keep_their_rate",
        about: "two processes that wait for each other, and as many such pairs as CPUs",
        run: handoffs_keep_their_rate,
    },
    Case {
        name: "yields_keep_their_rate",
        about: "two processes for each CPU that do nothing but yield",
        run: yields_keep_their_rate,
    },
    Case {
        name: "naps_keep_their_rate",
        about: "four processes for each CPU that do nothing but sleep for 50 us",
        run: naps_keep_their_rate,
    },
];

/// How long each process goes on.
const MEASURED: Duration = ms(500);

/// The last byte that a process sends.
const LAST: u8 = 1;

fn handoffs_keep_their_rate(bench: &Bench) -> Result<()> {
    // On a single CPU a handoff is a switch of tasks that EEVDF makes in 25 us; there the
    // callbacks, some 15 us in the emulator, weigh more than where a CPU has to be woken up.
    let (one, all) = if bench.cpus() == 1 {
        (0.55, 0.55)
    } else {
        (0.75, 0.65)
    };
    keeps_rate(bench, &[(1, one), (bench.cpus(), all)], "pairs", pairs)
}

fn yields_keep_their_rate(bench: &Bench) -> Result<()> {
    keeps_rate(bench, &[(2 * bench.cpus(), 0.27)], "that yield", yielders)
}

fn naps_keep_their_rate(bench: &Bench) -> Result<()> {
    keeps_rate(bench, &[(4 * bench.cpus(), 0.6)], "that nap", nappers)
}

/// Measures how often so many of what `start` starts get through their work in a second,
/// under EEVDF and under scx_sfs, and checks that the second is at least that part of the
/// first.
fn keeps_rate(
    bench: &Bench,
    gates: &[(usize, f64)],
    what: &str,
    start: fn(usize) -> Result<Vec<Process>>,
) -> Result<()> {
    let rates = || gates.iter().map(|(count, _)| rate_of(start(*count)?));
    let base = rates().collect::<Result<Vec<_>>>()?;
    let scheduler = bench.load("")?;
    let ours = rates().collect::<Result<Vec<_>>>()?;
    for ((base, ours), (count, least)) in base.iter().zip(&ours).zip(gates) {
        let part = ours / base;
        bench.say(format_args!(
            "{count} {what}: EEVDF {base:.0} a second, scx_sfs {ours:.0}, {part:.2} (at least {least})"
        ));
        ensure!(part >= *least, "too slow");
    }
    scheduler.finish()
}

/// Returns how often a second they report, until they end.
fn rate_of(mut processes: Vec<Process>) -> Result<f64> {
    wait_for_all(&mut processes)?;
    let times: u64 = processes.iter().map(|one| one.value.load(Relaxed)).sum();
    Ok(times as f64 / MEASURED.as_secs_f64())
}

/// Starts `count` processes that repeat `step`, and count how often.
fn repeaters(count: usize, step: fn()) -> Result<Vec<Process>> {
    let repeat = || {
        Process::spawn(|report| {
            let start = now();
            while since(start) < MEASURED {
                step();
                report.value.fetch_add(1, Relaxed);
            }
        })
    };
    (0..count).map(|_| repeat()).collect()
}

fn yielders(count: usize) -> Result<Vec<Process>> {
    repeaters(count, yield_now)
}

fn nappers(count: usize) -> Result<Vec<Process>> {
    repeaters(count, || sleep(Duration::from_micros(50)))
}

/// Starts `count` pairs of processes, each a client and its server.
fn pairs(count: usize) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for _ in 0..count {
        let (server, client) = UnixStream::pair().context("cannot make a pair of sockets")?;
        processes.push(Process::spawn(|_| answer(&server))?);
        processes.push(Process::spawn(|report| {
            let start = now();
            while since(start) < MEASURED {
                ask(&client);
                report.value.fetch_add(1, Relaxed);
            }
            (&client).write_all(&[LAST]).expect("cannot ask");
        })?);
    }
    Ok(processes)
}

fn ask(mut client: &UnixStream) {
    client.write_all(&[0]).expect("cannot ask");
    client.read_exact(&mut [0]).expect("there is no answer");
}

fn answer(mut server: &UnixStream) {
    let mut byte = [0];
    loop {
        server.read_exact(&mut byte).expect("nobody asks");
        if byte == [LAST] {
            return;
        }
        server.write_all(&byte).expect("cannot answer");
    }
}
