//! A case, and the bench that it works with.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};

use crate::clock::ms;
use crate::perturbation::Perturbation;
use crate::process::{chain, Process};
use crate::scheduler::Scheduler;
use crate::skip::Skip;
use crate::trace;

/// One behaviour.
pub struct Case {
    /// Its name for `tests/run`.
    pub name: &'static str,
    /// One line that describes the behaviour.
    pub about: &'static str,
    /// Checks the behaviour: an error is a failure, or a [`Skip`].
    pub run: fn(&Bench) -> Result<()>,
}

/// The kinds of machines that some cases need for themselves.
pub const APART: [&str; 3] = ["disk", "suspend", "isolcpus"];

impl Case {
    /// Returns the kind of machine that the case needs for itself, if any: the first word of its
    /// name.
    pub fn apart(&self) -> Option<&'static str> {
        let (kind, _) = self.name.split_once('_')?;
        APART.contains(&kind).then_some(kind)
    }
}

/// A case's means: the loader under test, the machine's CPUs, and notes.
pub struct Bench<'a> {
    scx_sfs: &'a Path,
    cpus: usize,
    notes: RefCell<File>,
}

impl<'a> Bench<'a> {
    /// Returns a bench for the loader `scx_sfs` on a machine with `cpus` CPUs; the case's notes
    /// go to `notes`.
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

    /// Returns the number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Checks that there are two CPUs, for a case in which something must run beside a busy CPU.
    ///
    /// # Errors
    ///
    /// A [`Skip`]: there is only one.
    pub fn needs_two_cpus(&self) -> Result<()> {
        ensure!(self.cpus > 1, Skip("it takes two CPUs"));
        Ok(())
    }

    /// Prints a measurement as a diagnostic of the case.
    pub fn say(&self, text: impl Display) {
        // There is nothing to do if this fails.
        let _ = writeln!(self.notes.borrow_mut(), "{text}");
    }

    /// Loads the scheduler with the given options, a line of words, and the options for all
    /// cases in the environment (`tests/run --with`).
    ///
    /// # Errors
    ///
    /// It does not load, or a [`Skip`]: the options of the environment conflict with the case's.
    pub fn load(&self, options: &str) -> Result<Scheduler> {
        let more = std::env::var("SFS_BEHAVIOUR_WITH").unwrap_or_default();
        let mut all: Vec<&str> = options.split_whitespace().collect();
        let option = more.split_whitespace().next();
        // An option of the case itself has precedence.
        let with = option.is_some_and(|option| !all.contains(&option));
        if with {
            all.extend(more.split_whitespace());
        }
        let scheduler = Scheduler::start(self.scx_sfs, &all).map_err(|error| {
            // Options that are valid by themselves and refused together.
            if with && error.to_string().contains("has no effect with") {
                error.context(Skip("its options conflict with those of --with"))
            } else {
                error
            }
        })?;
        // The loader's periodic work starts with the load, so the case continues later.
        Perturbation::of_environment()?.delay(options);
        Ok(scheduler)
    }

    /// The same with `--policy sfs`, for cases about S, FILTER, FAIR or overload.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_sfs(&self, options: &str) -> Result<Scheduler> {
        self.load(&format!("--policy sfs {options}"))
    }

    /// Keeps all CPUs busy with FAIR work: one hog for each, all of them demoted.
    ///
    /// # Errors
    ///
    /// The hogs are not demoted.
    pub fn demoted_hogs(&self, scheduler: &Scheduler) -> Result<Vec<Process>> {
        let before = scheduler.stats()?.demotions;
        let hogs = self.each_cpu(|_| Process::hog())?;
        let demoted = before + hogs.len() as u64;
        scheduler.wait_for("the hogs' demotion", |stats| stats.demotions >= demoted)?;
        Ok(hogs)
    }

    /// Keeps all CPUs busy with endless FILTER work, and a queue of the same length behind it:
    /// invocations of 10 ms, each of which forks the next one.
    ///
    /// # Errors
    ///
    /// A process cannot be forked.
    pub fn saturate_filter(&self) -> Result<Vec<Process>> {
        (0..2 * self.cpus).map(|_| chain(ms(10))).collect()
    }

    /// Returns the results of `make` for the numbers of all CPUs.
    ///
    /// # Errors
    ///
    /// The first error of `make`.
    pub fn each_cpu<T>(&self, make: impl FnMut(usize) -> Result<T>) -> Result<Vec<T>> {
        (0..self.cpus).map(make).collect()
    }

    /// Prints a measurement and checks that it does not exceed `limit`.
    ///
    /// # Errors
    ///
    /// It exceeds the limit.
    pub fn at_most(&self, what: &str, measured: Duration, limit: Duration) -> Result<()> {
        self.say(format_args!("{what}: {measured:?} (limit {limit:?})"));
        ensure!(measured <= limit, "{what} took {measured:?}");
        Ok(())
    }

    /// Checks with a trace of `sched/sched_switch` that no process of this suite has preempted
    /// one of `functions`; see [`trace::taken_by_our_own`].
    ///
    /// # Errors
    ///
    /// One has, or too many functions slept for a result.
    pub fn expect_not_preempted(&self, text: &str, functions: &[Process]) -> Result<()> {
        let slept = trace::slept(text, functions);
        if !slept.is_empty() {
            self.say(format_args!("processes that slept: {slept:?}"));
        }
        ensure!(
            slept.len() <= functions.len() / 2,
            "too many functions slept"
        );
        let taken = trace::taken_by_our_own(text, functions);
        ensure!(taken.is_empty(), "preempted (victim, thief): {taken:?}");
        Ok(())
    }
}
