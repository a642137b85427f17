//! Matches: two tenants in groups of equal weight share the machine for some seconds, one of
//! them by a plan of its own, the other with as many hogs as there are CPUs.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{ensure, Result};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};

use crate::case::Bench;
use crate::cgroup::{enable_cpu_controller, Cgroup};
use crate::clock::{ms, now, sleep, wait_until};
use crate::process::{Process, PATIENCE};
use crate::scheduler::{self, Scheduler, Stats};
use crate::tenant::{self, Plan};

/// How long a match lasts.
#[derive(Clone, Copy)]
pub struct Length {
    /// Both have used up by then what they have saved.
    pub warm_up: Duration,
    /// What counts.
    pub measured: Duration,
}

/// The length of a match that a case asserts on.
const USUAL: Length = Length {
    warm_up: ms(500),
    measured: ms(2000),
};

/// Completions from which ranks are learned.
const LESSONS: u32 = 120;

/// How a match has ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// What the attacker has had, of what both have had: 0.5 is its due.
    pub share: f64,
    /// What both have had, of the whole machine.
    pub of_all: f64,
    /// How often work with credit ran in FAIR for its tenant's debt.
    pub in_debt: u64,
}

impl Outcome {
    /// Returns what the attacker has had, of its due: the half of what both have had.
    pub fn gain(&self) -> f64 {
        2.0 * self.share
    }

    /// Returns what the honest tenant has had, of its due: the half of the machine.
    pub fn neighbour(&self) -> f64 {
        2.0 * (1.0 - self.share) * self.of_all
    }
}

/// Plays `plan` against an honest tenant, under scx_sfs with `options` or, if those are
/// "eevdf", under the kernel's own scheduler.
///
/// # Errors
///
/// The scheduler does not load, or fails; there cannot be so many processes.
pub fn play(bench: &Bench, plan: &str, options: &str) -> Result<Outcome> {
    let arena = Arena::open(bench, options)?;
    let outcome = arena.play(&plan.parse()?, USUAL)?;
    arena.close()?;
    Ok(outcome)
}

/// Where matches are played, one after another, under one scheduler.
pub struct Arena<'a> {
    bench: &'a Bench<'a>,
    scheduler: Option<Scheduler>,
    /// Whether the scheduler is to see the tenants as sandboxes.
    has_sandboxes: bool,
    /// Matches so far. The tenants of each are new.
    played: Cell<u32>,
    _tenants: Cgroup,
}

impl<'a> Arena<'a> {
    /// Loads scx_sfs with `options`, or, if those are "eevdf", nothing. With the learned
    /// policy, it is taught until it ranks.
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
    /// The scheduler is gone; there cannot be so many processes.
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

    /// Waits until the scheduler knows of so many sandboxes, if it looks for any.
    fn wait_for_sandboxes(&self, count: u64) -> Result<()> {
        if let Some(scheduler) = self.scheduler.as_ref().filter(|_| self.has_sandboxes) {
            scheduler.wait_for("the tenants", |stats| stats.sandboxes == count)?;
        }
        Ok(())
    }

    /// Has the scheduler know so much of functions that it ranks them.
    fn teach(&self) -> Result<()> {
        let Some(scheduler) = &self.scheduler else {
            return Ok(());
        };
        let tenant = Cgroup::new("fn/taught")?;
        self.wait_for_sandboxes(1)?;
        for _ in 0..LESSONS {
            Process::spawn_in(&tenant, |report| report.burn(ms(2)))?.wait()?;
        }
        scheduler.wait_for("ranks", |stats| stats.rank_tables > 0)?;
        drop(tenant);
        self.wait_for_sandboxes(0)
    }
}

/// Ends all that runs in `tenant`, and below.
fn empty(tenant: &Cgroup) -> Result<()> {
    tenant.set("cgroup.kill", "1")?;
    wait_until(PATIENCE, || {
        // Whoever has lost its parent is this process's child.
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
    // All at once: one by one, each would wait for its last turn behind all others.
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
