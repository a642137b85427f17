//! Matches: two tenants in groups of equal weight share the machine for some seconds. The
//! attacker follows a plan, the honest tenant has as many hogs as there are CPUs.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{ensure, Result};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};

use crate::tenant::{self, Plan};
use sfs_testbed::case::Bench;
use sfs_testbed::cgroup::{enable_cpu_controller, Cgroup};
use sfs_testbed::clock::{ms, now, sleep, wait_until, PATIENCE};
use sfs_testbed::process::Process;
use sfs_testbed::scheduler::{self, Scheduler, Stats};

/// The length of a match.
#[derive(Clone, Copy)]
pub struct Length {
    /// Warm-up before the measurement: both tenants use up saved tokens.
    pub warm_up: Duration,
    /// The measured time.
    pub measured: Duration,
}

/// The length of a match in a case.
const USUAL: Length = Length {
    warm_up: ms(500),
    measured: ms(2000),
};

/// Number of completions from which ranks are learned.
const LESSONS: u32 = 120;

/// The result of a match.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The attacker's share of both tenants' CPU time: 0.5 is its due.
    pub share: f64,
    /// Both tenants' share of the machine's CPU time, from 0 to 1.
    pub of_all: f64,
    /// Number of times that tasks with credit ran in FAIR because of their
    /// tenant's debt.
    pub in_debt: u64,
}

impl Outcome {
    /// Returns the attacker's CPU time relative to its due, half of both tenants' time: 1 is fair.
    pub fn gain(&self) -> f64 {
        2.0 * self.share
    }

    /// Returns the honest tenant's CPU time relative to its due, half of the machine: 1 is fair.
    pub fn neighbour(&self) -> f64 {
        2.0 * (1.0 - self.share) * self.of_all
    }
}

/// Plays `plan`, with at least as many tasks as CPUs, against an honest tenant, under scx_sfs with
/// `options`, or under the kernel's own scheduler if these are "eevdf".
///
/// # Errors
///
/// The scheduler does not load, or fails; or a process cannot be forked.
pub fn play(bench: &Bench, plan: &str, options: &str) -> Result<Outcome> {
    let arena = Arena::open(bench, options)?;
    let outcome = arena.play(&plan.parse::<Plan>()?.at_least(bench.cpus()), USUAL)?;
    arena.close()?;
    Ok(outcome)
}

/// Plays matches one after another under one scheduler.
pub struct Arena<'a> {
    bench: &'a Bench<'a>,
    scheduler: Option<Scheduler>,
    /// Whether the scheduler should see the tenants as sandboxes.
    has_sandboxes: bool,
    /// Number of matches so far. Each match has new tenants.
    played: Cell<u32>,
    _tenants: Cgroup,
}

impl<'a> Arena<'a> {
    /// Loads scx_sfs with `options`, or nothing if these are "eevdf". With the learned policy,
    /// runs a function until there are ranks.
    ///
    /// # Errors
    ///
    /// It does not load, or does not learn.
    pub fn open(bench: &'a Bench<'a>, options: &str) -> Result<Self> {
        enable_cpu_controller()?;
        let tenants = Cgroup::new("fn")?;
        tenants.set("cgroup.subtree_control", "+cpu")?;
        let scheduler = match options {
            "eevdf" => None,
            options => Some(bench.load(options)?),
        };
        let arena = Self {
            bench,
            scheduler,
            has_sandboxes: options.contains("--cgroup"),
            played: Cell::new(0),
            _tenants: tenants,
        };
        if options.contains("learned") {
            arena.teach()?;
        }
        Ok(arena)
    }

    /// Unloads the scheduler.
    ///
    /// # Errors
    ///
    /// The kernel has ejected it, or it fails.
    pub fn close(self) -> Result<()> {
        self.scheduler.map_or(Ok(()), Scheduler::finish)
    }

    /// Plays one match.
    ///
    /// # Errors
    ///
    /// The scheduler is gone, or a process cannot be forked.
    pub fn play(&self, plan: &Plan, length: Length) -> Result<Outcome> {
        let number = self.played.get();
        self.played.set(number + 1);
        let bad = Cgroup::new(&format!("fn/bad-{number}"))?;
        let good = Cgroup::new(&format!("fn/good-{number}"))?;
        self.wait_for_sandboxes(2)?;
        let before = self.stats()?.in_debt;
        let mut outcome = measure(self.bench, plan, &bad, &good, length)?;
        empty(&bad)?;
        empty(&good)?;
        outcome.in_debt = self.stats()?.in_debt - before;
        drop((bad, good));
        self.wait_for_sandboxes(0)?;
        if self.scheduler.is_some() {
            let state = scheduler::state();
            ensure!(
                state == "enabled",
                "the scheduler is {state} after \"{plan}\""
            );
        }
        Ok(outcome)
    }

    fn stats(&self) -> Result<Stats> {
        let stats = self.scheduler.as_ref().map(Scheduler::stats);
        stats.unwrap_or_else(|| Ok(Stats::default()))
    }

    /// Waits until the scheduler knows `count` sandboxes, if it looks for any.
    fn wait_for_sandboxes(&self, count: u64) -> Result<()> {
        if let Some(scheduler) = self.scheduler.as_ref().filter(|_| self.has_sandboxes) {
            scheduler.wait_for("the tenants", |stats| stats.sandboxes == count)?;
        }
        Ok(())
    }

    /// Runs invocations that the scheduler learns from.
    fn teach(&self) -> Result<()> {
        let Some(scheduler) = &self.scheduler else {
            return Ok(());
        };
        let tenant = Cgroup::new("fn/taught")?;
        self.wait_for_sandboxes(1)?;
        for _ in 0..LESSONS {
            Process::spawn_in(&tenant, |report| report.burn(ms(2)))?.wait()?;
        }
        scheduler.wait_for("a known function", |stats| stats.functions > 0)?;
        drop(tenant);
        self.wait_for_sandboxes(0)
    }
}

/// Kills all processes in `tenant` and below.
fn empty(tenant: &Cgroup) -> Result<()> {
    tenant.set("cgroup.kill", "1")?;
    wait_until(PATIENCE, || {
        // Orphans are this process's children.
        while waitpid(None, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
        tenant.is_populated().is_ok_and(|populated| !populated)
    });
    Ok(())
}

fn measure(
    bench: &Bench,
    plan: &Plan,
    bad: &Cgroup,
    good: &Cgroup,
    length: Length,
) -> Result<Outcome> {
    let honest =
        bench.each_cpu(|_| Process::spawn_in(good, |report| report.burn(Duration::MAX)))?;
    let mut cheats = Vec::new();
    for strategy in &plan.0 {
        for _ in 0..strategy.tasks {
            cheats.push(Process::spawn_in(bad, |_| tenant::play(strategy, 0))?);
        }
    }
    sleep(length.warm_up);
    let (start, before) = (now(), (bad.cpu_time()?, good.cpu_time()?));
    sleep(length.measured);
    let (end, after) = (now(), (bad.cpu_time()?, good.cpu_time()?));
    // All at once, or each would wait behind all others for its last turn.
    bad.set("cgroup.kill", "1")?;
    good.set("cgroup.kill", "1")?;
    drop((honest, cheats));
    let (bad, good) = (after.0 - before.0, after.1 - before.1);
    let both = (bad + good).as_secs_f64();
    let machine = (end - start).as_secs_f64() * bench.cpus() as f64;
    Ok(Outcome {
        share: bad.as_secs_f64() / both,
        of_all: both / machine,
        in_debt: 0,
    })
}
