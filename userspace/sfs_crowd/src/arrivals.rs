//! Short threads at a rate: with `--unit thread`, the cheapest invocations.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::prctl::set_name;

use crate::system::{burn, now, sleep_until, spawn};

/// Threads that are due are started once in this period.
const PERIOD: Duration = Duration::from_millis(1);

/// CPU time of each thread.
const BURST: Duration = Duration::from_micros(1);

/// Maximum number of threads at a time: a machine that is too slow starts fewer
/// per second, instead of ever more at a time.
const MOST: u64 = 1000;

/// Starts `rate` threads a second for `seconds`, of `functions` names in turn.
///
/// # Errors
///
/// A thread cannot be started, or the result cannot be written.
pub fn run(rate: u32, seconds: u32, functions: u32) -> Result<()> {
    let ended = Arc::new(AtomicU64::new(0));
    let (start, mut started) = (now(), 0u64);
    let all = u64::from(rate) * u64::from(seconds);
    let mut next = start;
    while started < all {
        next += PERIOD;
        sleep_until(next);
        let wanted = (now() - start).as_nanos() as u64 * u64::from(rate) / 1_000_000_000;
        let due = all.min(wanted).min(ended.load(Relaxed) + MOST);
        for number in started..due {
            start_one(number, functions, &ended)?;
        }
        started = due;
    }
    let took = (now() - start).as_secs_f64();
    while ended.load(Relaxed) < started {
        sleep_until(now() + PERIOD);
    }
    writeln!(
        io::stdout(),
        "{started} arrivals, {:.0} a second",
        started as f64 / took
    )?;
    Ok(())
}

/// Starts a thread; it inherits its parent's current name.
fn start_one(number: u64, functions: u32, ended: &Arc<AtomicU64>) -> Result<()> {
    if functions > 1 {
        let name = std::ffi::CString::new(format!("f{}", number % u64::from(functions)))?;
        set_name(&name).context("cannot set the name")?;
    }
    let ended = Arc::clone(ended);
    spawn(move || {
        burn(BURST);
        ended.fetch_add(1, Relaxed);
    })?;
    Ok(())
}

/// Runs `count` threads one after another, each for `burst`.
///
/// # Errors
///
/// A thread cannot be started, or fails.
pub fn rehearse(count: u32, burst: Duration) -> Result<()> {
    for _ in 0..count {
        let ended = spawn(move || burn(burst))?.join();
        ensure!(ended.is_ok(), "a thread has failed");
    }
    Ok(())
}
