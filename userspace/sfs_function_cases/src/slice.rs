//! S follows the interarrival times.

use std::time::Duration;

use anyhow::{ensure, Result};

use sfs_testbed::case::{Bench, Case};
use sfs_testbed::clock::ms;
use sfs_testbed::process::fork_every;
use sfs_testbed::scheduler::Scheduler;

/// The cases of this file, in the order in which they run.
pub const CASES: &[Case] = &[
    Case {
        name: "slice_follows_iats",
        about: "S = mean IAT x CPUs after N arrivals, and follows when the IATs change",
        run: slice_follows_iats,
    },
    Case {
        name: "slice_is_clamped",
        about: "S stays within --slice-min-us and --slice-max-us",
        run: slice_is_clamped,
    },
    Case {
        name: "fixed_slice_stays",
        about: "with --slice-us arrivals do not change S",
        run: fixed_slice_stays,
    },
];

/// Expects S to be within 3 % of `wanted`.
fn expect_slice(bench: &Bench, scheduler: &Scheduler, wanted: Duration) -> Result<()> {
    let wanted = wanted.as_micros() as u64;
    let stats = scheduler.wait_for("the slice", |stats| {
        stats.slice_us.abs_diff(wanted) <= wanted * 3 / 100
    })?;
    bench.say(format_args!(
        "S = {} us, wanted {wanted} us; mean IAT {} us",
        stats.slice_us, stats.mean_iat_us
    ));
    Ok(())
}

fn slice_follows_iats(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--iat-window 20")?;
    let cpus = bench.cpus() as u32;
    expect_slice(bench, &scheduler, ms(100))?; // before the first window
    fork_every(ms(10), 20)?;
    expect_slice(bench, &scheduler, ms(10) * cpus)?;
    // The pause before these is in the first of the two windows.
    fork_every(ms(20), 40)?;
    expect_slice(bench, &scheduler, ms(20) * cpus)?;
    let arrivals = scheduler.stats()?.arrivals;
    ensure!(arrivals == 60, "{arrivals} arrivals, not 60");
    scheduler.finish()
}

fn slice_is_clamped(bench: &Bench) -> Result<()> {
    bench.needs_two_cpus()?;
    let scheduler = bench.load_sfs("--iat-window 20 --slice-min-us 30000 --slice-max-us 40000")?;
    expect_slice(bench, &scheduler, ms(40))?;
    fork_every(ms(2), 20)?;
    expect_slice(bench, &scheduler, ms(30))?;
    fork_every(ms(40), 20)?;
    expect_slice(bench, &scheduler, ms(40))?;
    scheduler.finish()
}

fn fixed_slice_stays(bench: &Bench) -> Result<()> {
    let scheduler = bench.load_sfs("--slice-us 5000")?;
    fork_every(ms(2), 101)?; // N is 100
    let stats = scheduler.wait_for("the first window", |stats| stats.mean_iat_us > 0)?;
    bench.say(format_args!("mean IAT {} us", stats.mean_iat_us));
    ensure!(stats.slice_us == 5000, "S is {} us", stats.slice_us);
    scheduler.finish()
}
