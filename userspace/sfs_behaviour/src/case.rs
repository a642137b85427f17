//! What a case is, and what it is given to work with.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};

use crate::clock::{ms, now};
use crate::perturbation::Perturbation;
use crate::process::{chain, Process};
use crate::scheduler::Scheduler;
use crate::trace;

/// One behaviour.
pub struct Case {
    /// What `tests/run` calls it.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Checks it: an error is a failure, or a [`Skip`].
    pub run: fn(&Bench) -> Result<()>,
}

/// The kinds of cases that need a machine of their own.
pub const APART: [&str; 3] = ["disk", "suspend", "isolcpus"];

impl Case {
    /// Returns its kind if it needs a machine of its own: what its name begins with.
    pub fn apart(&self) -> Option<&'static str> {
        let (kind, _) = self.name.split_once('_')?;
        APART.contains(&kind).then_some(kind)
    }
}

/// The reason for which a case cannot be tried on this machine.
#[derive(Debug)]
pub struct Skip(pub &'static str);

impl Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Skip {}

/// What a case works with.
pub struct Bench<'a> {
    scx_sfs: &'a Path,
    cpus: usize,
    notes: RefCell<File>,
}

impl<'a> Bench<'a> {
    /// A bench for the given program, on a machine with `cpus` CPUs; what the
    /// case says goes to `notes`.
    pub fn new(scx_sfs: &'a Path, cpus: usize, notes: File) -> Self {
        let notes = RefCell::new(notes);
        Self {
            scx_sfs,
            cpus,
            notes,
        }
    }

    /// Returns the path of the loader.
    pub fn program(&self) -> &Path {
        self.scx_sfs
    }

    /// Returns how many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Checks that there are two CPUs, for a case in which something has to go on beside
    /// what keeps a CPU.
    ///
    /// # Errors
    ///
    /// There is one: a [`Skip`].
    pub fn needs_two_cpus(&self) -> Result<()> {
        ensure!(self.cpus > 1, Skip("it takes two CPUs"));
        Ok(())
    }

    /// Prints what has been measured, as a diagnostic of the case.
    pub fn say(&self, text: impl Display) {
        // Nothing is left to do if not even this works.
        let _ = writeln!(self.notes.borrow_mut(), "{text}");
    }

    /// Loads the scheduler with the given options, a line of words, and those that the
    /// environment has for all cases (`tests/run --with`).
    ///
    /// # Errors
    ///
    /// It does not load.
    pub fn load(&self, options: &str) -> Result<Scheduler> {
        let more = std::env::var("SFS_BEHAVIOUR_WITH").unwrap_or_default();
        let mut all: Vec<&str> = options.split_whitespace().collect();
        let option = more.split_whitespace().next();
        // What a case itself asks for stands.
        let with = option.is_some_and(|option| !all.contains(&option));
        if with {
            all.extend(more.split_whitespace());
        }
        let scheduler = Scheduler::start(self.scx_sfs, &all).map_err(|error| {
            // Options that are alright by themselves and refused together.
            if with && error.to_string().contains("has no effect with") {
                error.context(Skip("its own options rule out those of --with"))
            } else {
                error
            }
        })?;
        // What the loader does now and then it has begun together with the case.
        Perturbation::of_environment()?.delay(options);
        Ok(scheduler)
    }

    /// Keeps all CPUs busy with FAIR work: one hog for each, all of them demoted.
    ///
    /// # Errors
    ///
    /// They are not demoted.
    pub fn demoted_hogs(&self, scheduler: &Scheduler) -> Result<Vec<Process>> {
        let before = scheduler.stats()?.demotions;
        let hogs = self.each_cpu(|_| Process::hog())?;
        let demoted = before + hogs.len() as u64;
        scheduler.wait_for("the hogs' demotion", |stats| stats.demotions >= demoted)?;
        Ok(hogs)
    }

    /// Keeps all CPUs busy with FILTER work that never ends, and a queue of as
    /// many behind it: invocations of 10 ms, each of which forks the next one.
    ///
    /// # Errors
    ///
    /// There cannot be so many processes.
    pub fn saturate_filter(&self) -> Result<Vec<Process>> {
        (0..2 * self.cpus).map(|_| chain(ms(10))).collect()
    }

    /// Returns what `make` makes for each CPU.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub fn each_cpu<T>(&self, make: impl FnMut(usize) -> Result<T>) -> Result<Vec<T>> {
        (0..self.cpus).map(make).collect()
    }

    /// Prints that something has been measured and must not exceed `limit`.
    ///
    /// # Errors
    ///
    /// It does.
    pub fn at_most(&self, what: &str, measured: Duration, limit: Duration) -> Result<()> {
        self.say(format_args!("{what}: {measured:?} (limit {limit:?})"));
        ensure!(measured <= limit, "{what} took {measured:?}");
        Ok(())
    }

    /// Checks with a trace of `sched/sched_switch` that no process of this suite has taken
    /// the CPU from one of `functions`; see [`trace::taken_by_our_own`].
    ///
    /// # Errors
    ///
    /// One has, or so many of them have slept that nothing is shown.
    pub fn expect_not_preempted(&self, text: &str, functions: &[Process]) -> Result<()> {
        let slept = trace::slept(text, functions);
        if !slept.is_empty() {
            self.say(format_args!("have slept: {slept:?}"));
        }
        ensure!(slept.len() <= functions.len() / 2, "too many have slept");
        let taken = trace::taken_by_our_own(text, functions);
        ensure!(taken.is_empty(), "preempted, each with by whom: {taken:?}");
        Ok(())
    }
}

/// Stops a stopwatch that was started at `start`.
pub fn since(start: Duration) -> Duration {
    now() - start
}
