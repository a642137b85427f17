//! Matches: two tenants in groups of equal weight share the machine for some seconds, one of
//! them by a strategy of its own, the other with as many hogs as there are CPUs.

use std::time::Duration;

use anyhow::Result;

use crate::case::Bench;
use crate::cgroup::{enable_cpu_controller, Cgroup};
use crate::clock::{ms, now, sleep, wait_until};
use crate::process::{Process, PATIENCE};
use crate::scheduler::Scheduler;
use crate::tenant::{self, Strategy};

/// Both have used up by then what they have saved.
const WARM_UP: Duration = ms(500);

/// What is measured.
const MEASURED: Duration = ms(2000);

/// Completions from which ranks are learned.
const LESSONS: u32 = 120;

/// How a match has ended.
pub struct Outcome {
    /// What the attacker has had, of what both have had: 0.5 is its due.
    pub share: f64,
    /// What both have had, of the whole machine.
    pub of_all: f64,
    /// How often work with credit ran in FAIR for its tenant's debt.
    pub in_debt: u64,
}

/// Plays `strategy` against an honest tenant, under scx_sfs with `options` or, if those are
/// "eevdf", under the kernel's own scheduler.
///
/// # Errors
///
/// The scheduler does not load, or fails; there cannot be so many processes.
pub fn play(bench: &Bench, strategy: &str, options: &str) -> Result<Outcome> {
    enable_cpu_controller()?;
    let tenants = Cgroup::new("fn")?;
    tenants.set("cgroup.subtree_control", "+cpu")?;
    let (bad, good) = (Cgroup::new("fn/bad")?, Cgroup::new("fn/good")?);
    let scheduler = match options {
        "eevdf" => None,
        options => Some(bench.load(options)?),
    };
    if let Some(scheduler) = scheduler.as_ref().filter(|_| options.contains("learned")) {
        teach(scheduler, &good)?;
    }
    let mut outcome = measure(bench, &strategy.parse()?, &bad, &good)?;
    for tenant in [&bad, &good] {
        tenant.set("cgroup.kill", "1")?;
        wait_until(PATIENCE, || {
            tenant.is_populated().is_ok_and(|populated| !populated)
        });
    }
    if let Some(scheduler) = scheduler {
        outcome.in_debt = scheduler.stats()?.in_debt;
        scheduler.finish()?;
    }
    Ok(outcome)
}

/// Has the scheduler know so much of functions that it ranks them.
fn teach(scheduler: &Scheduler, tenant: &Cgroup) -> Result<()> {
    for _ in 0..LESSONS {
        Process::spawn_in(tenant, |report| report.burn(ms(2)))?.wait()?;
    }
    scheduler.wait_for("ranks", |stats| stats.rank_tables > 0)?;
    Ok(())
}

fn measure(bench: &Bench, strategy: &Strategy, bad: &Cgroup, good: &Cgroup) -> Result<Outcome> {
    let honest =
        bench.each_cpu(|_| Process::spawn_in(good, |report| report.burn(Duration::MAX)))?;
    let cheats: Result<Vec<Process>> = (0..strategy.tasks)
        .map(|_| Process::spawn_in(bad, |_| tenant::play(strategy, 0)))
        .collect();
    sleep(WARM_UP);
    let (start, before) = (now(), (bad.cpu_time()?, good.cpu_time()?));
    sleep(MEASURED);
    let (end, after) = (now(), (bad.cpu_time()?, good.cpu_time()?));
    let (bad, good) = (after.0 - before.0, after.1 - before.1);
    drop((honest, cheats));
    let both = (bad + good).as_secs_f64();
    let machine = (end - start).as_secs_f64() * bench.cpus() as f64;
    Ok(Outcome {
        share: bad.as_secs_f64() / both,
        of_all: both / machine,
        in_debt: 0,
    })
}
