//! Shared by cases about groups: hogs in groups, and the CPU time and share of
//! a group.

use std::time::Duration;

use anyhow::{ensure, Result};

use sfs_testbed::case::Bench;
use sfs_testbed::cgroup::Cgroup;
use sfs_testbed::clock::sleep;
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{Scheduler, NOT_TOLD};
use sfs_testbed::skip::Skip;

/// Options with which a hog is in FAIR almost at once.
pub(super) const ALL_FAIR: &str = "--policy sfs --slice-us 1000 --no-overload";

/// Starts `count` hogs in `group`.
pub(super) fn hogs_in(group: &Cgroup, count: usize) -> Result<Vec<Process>> {
    let hogs = (0..count).map(|_| {
        let hog = Process::hog()?;
        group.take(hog.pid())?;
        Ok(hog)
    });
    hogs.collect()
}

/// Returns the CPU time that `group` gets in `interval`.
pub(super) fn used_in(group: &Cgroup, interval: Duration) -> Result<Duration> {
    let before = group.cpu_time()?;
    sleep(interval);
    Ok(group.cpu_time()? - before)
}

/// Expects `part` to be `percent` of `whole`, within `points`.
pub(super) fn expect_share(
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

/// Makes `depth` nested groups below `top`, with the CPU controller in each. Returns all,
/// beginning with `top`.
pub(super) fn nest(top: &str, depth: usize) -> Result<Vec<Cgroup>> {
    let mut nested = vec![Cgroup::new(top)?];
    for level in 1..=depth {
        nested[level - 1].set("cgroup.subtree_control", "+cpu")?;
        nested.push(Cgroup::new(&format!("{top}{}", "/n".repeat(level)))?);
    }
    Ok(nested)
}

/// Loads the scheduler, on a kernel that reports quotas to it.
///
/// # Errors
///
/// The kernel does not report them (a [`Skip`]), or the scheduler does not
/// load.
pub(super) fn load_with_quotas(bench: &Bench, options: &str) -> Result<Scheduler> {
    let scheduler = bench.load(options)?;
    if scheduler.log().contains(NOT_TOLD) {
        scheduler.finish()?;
        return Err(Skip("this kernel does not tell a scheduler of cpu.max").into());
    }
    Ok(scheduler)
}
