//! Learning: service times from the kernel half in, rank tables out, and what is
//! known kept in a file. What is learned from them is `sfs_policy::learn`'s.

mod pace;
mod report;
mod save;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use sfs_policy::defaults::REFRESH;
use sfs_policy::learn::{Change, LearnConfig, Learner, Table};
use tracing::{info, warn};

use crate::bpf_intf::sfs_completion;
use pace::Pace;
pub use report::{print_functions, FunctionReport};
pub use save::write_whole;
use save::Saver;

/// Functions whose tables are made without looking at anything else: a matter of
/// milliseconds.
const AT_A_TIME: usize = 500;

/// Time after which what is known is saved, besides at the end, if it has changed. By time,
/// not by completions, so that nobody decides how much is written.
const SAVE_AFTER: Duration = Duration::from_secs(60);

/// What ranks functions by what was learned: the kernel half.
pub trait Ranking {
    /// Puts a rank table into its place.
    ///
    /// # Errors
    ///
    /// It is refused.
    fn set_rank_table(&mut self, id: u16, table: &Table) -> Result<()>;

    /// Has functions that have no table of their own use table `id`.
    fn set_default_table(&mut self, id: u16);

    /// Has `function` use table `id`.
    ///
    /// # Errors
    ///
    /// There are too many functions.
    fn set_function_table(&mut self, function: u64, id: u16) -> Result<()>;

    /// Has `function` use the default table.
    ///
    /// # Errors
    ///
    /// It is refused.
    fn forget_function(&mut self, function: u64) -> Result<()>;

    /// Has nothing ranked any more, as before the first table. This cannot fail.
    fn rank_no_more(&mut self);
}

/// What the loader has learned.
pub struct Learning {
    learner: Learner,
    /// The kernel half has refused something: nothing is ranked any more.
    given_up: bool,
    saver: Option<Saver>,
    since_refresh: u32,
    /// Whether something is known that has not been handed to the saver.
    unsaved: bool,
    saved_at: Instant,
    complained: bool,
    pace: Pace,
    round: Option<Round>,
}

/// The functions that had changed when their tables were due, while they are made.
#[derive(Debug)]
struct Round {
    /// How many of them are left, at most.
    left: usize,
    /// How long it has taken so far.
    busy: Duration,
}

impl Learning {
    /// Starts with what is in `file`, or with nothing: a file that is missing is
    /// made later, one that cannot be used is said so and replaced.
    pub fn new(file: Option<PathBuf>) -> Self {
        let learner = file.as_deref().map_or_else(fresh, restore);
        Self {
            learner,
            given_up: false,
            saver: file.and_then(start_saver),
            since_refresh: REFRESH, // what was restored is told at once
            unsaved: false,
            saved_at: Instant::now(),
            complained: false,
            pace: Pace::default(),
            round: None,
        }
    }

    /// Takes completions, and tells the kernel half what follows from them, or a part of
    /// it: [`has_more`](Self::has_more) tells whether to come back at once. If it cannot
    /// be told, that is said, and nothing is ranked any more; what functions need is
    /// still learned, for the next start.
    pub fn take(&mut self, completions: &[sfs_completion], kernel: &mut impl Ranking) {
        for one in completions {
            let learn = match (one.killed != 0, one.counted != 0) {
                (false, true) => Learner::on_completion,
                (false, false) => Learner::on_uncounted_completion,
                (true, true) => Learner::on_kill,
                (true, false) => Learner::on_uncounted_kill,
            };
            learn(&mut self.learner, one.function, one.service_ns);
        }
        let count = completions.len() as u32;
        self.since_refresh += count;
        self.unsaved |= count > 0;
        let is_due = self.since_refresh >= REFRESH && self.pace.is_due(Instant::now());
        if !self.given_up && (self.round.is_some() || is_due) {
            if let Err(error) = self.go_on(kernel) {
                self.give_up(&error, kernel);
            }
        }
        if self.is_save_due(Instant::now()) {
            self.save();
        }
    }

    /// A kernel half with half of the tables would rank by chance: it is to rank nothing.
    fn give_up(&mut self, error: &anyhow::Error, kernel: &mut impl Ranking) {
        kernel.rank_no_more();
        self.given_up = true;
        self.round = None;
        warn!(
            "{error:#}: functions are not ranked any more, but scheduled as with --policy sfs \
             until the next start"
        );
    }

    /// Returns whether there is more to tell the kernel half at once.
    pub fn has_more(&self) -> bool {
        self.round.is_some()
    }

    /// Tells the kernel half a part of what has changed.
    fn go_on(&mut self, kernel: &mut impl Ranking) -> Result<()> {
        let begin = Instant::now();
        let mut round = self.round.take().unwrap_or_else(|| {
            self.since_refresh = 0;
            // The first part may find that all functions change.
            Round {
                left: usize::MAX,
                busy: Duration::ZERO,
            }
        });
        self.tell(kernel)?;
        let end = Instant::now();
        round.busy += end - begin;
        // What changes meanwhile is for the next round, or this one may never end.
        round.left = (round.left.saturating_sub(AT_A_TIME)).min(self.learner.pending());
        if round.left > 0 {
            self.round = Some(round);
        } else {
            self.pace.done(round.busy, end);
        }
        Ok(())
    }

    fn tell(&mut self, kernel: &mut impl Ranking) -> Result<()> {
        let was_ready = self.learner.is_ready();
        for change in self.learner.refresh_some(AT_A_TIME) {
            match change {
                Change::Table(id, table) => kernel.set_rank_table(id, &table)?,
                Change::DefaultTable(id) => kernel.set_default_table(id),
                Change::Function(function, id) => {
                    let told = kernel.set_function_table(function, id);
                    told.unwrap_or_else(|error| self.complain(&error));
                }
                Change::Forgotten(function) => kernel.forget_function(function)?,
            }
        }
        if self.learner.is_ready() && !was_ready {
            info!("functions are ranked by what was learned from now on");
        }
        Ok(())
    }

    /// Says once that a function keeps its old rank, or that of the default table.
    fn complain(&mut self, error: &anyhow::Error) {
        if !self.complained {
            self.complained = true;
            warn!("{error:#}: functions that this happens to keep the rank that they had");
        }
    }

    /// Returns whether it is time to save, and what was saved before has reached the disk:
    /// one that is slow gets no more than it can take.
    fn is_save_due(&self, now: Instant) -> bool {
        let is_time = self.unsaved && now.saturating_duration_since(self.saved_at) >= SAVE_AFTER;
        is_time && self.saver.as_ref().is_some_and(Saver::is_idle)
    }

    /// Has what is known saved, if there is a file for it. This does not wait. That it
    /// cannot be saved is said, and no reason to stop.
    pub fn save(&mut self) {
        self.unsaved = false;
        self.saved_at = Instant::now();
        if let Some(saver) = &self.saver {
            saver.save(self.learner.snapshot());
        }
    }

    /// Waits until all is saved. Nothing is from now on.
    pub fn finish_saving(&mut self) {
        drop(self.saver.take());
    }

    /// Returns whether functions are ranked: there are tables, and the kernel half has
    /// taken them.
    pub fn is_in_force(&self) -> bool {
        self.learner.is_ready() && !self.given_up
    }

    /// Returns whether ranks have been given up until the next start.
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Returns how many functions are known, and how many tables they are ranked by.
    pub fn size(&self) -> (usize, usize) {
        let tables = if self.given_up {
            0
        } else {
            self.learner.tables()
        };
        (self.learner.len(), tables)
    }
}

fn fresh() -> Learner {
    Learner::new(LearnConfig::default())
}

fn start_saver(file: PathBuf) -> Option<Saver> {
    let started = Saver::start(file);
    let failed = |error: &io::Error| warn!("what is learned cannot be saved: {error}");
    started.inspect_err(failed).ok()
}

fn restore(file: &Path) -> Learner {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fresh(),
        Err(error) => {
            warn!("cannot read {}: {error}; learning afresh", file.display());
            return fresh();
        }
    };
    match Learner::decode(LearnConfig::default(), &bytes) {
        Ok(learner) => learner,
        Err(error) => {
            warn!("{} is of no use: {error}; learning afresh", file.display());
            fresh()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrupt_state_is_no_reason_to_fail() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        fs::write(&file, b"not a state").unwrap();
        let mut learning = Learning::new(Some(file.clone()));
        assert_eq!(learning.size().0, 0);
        learning.learner.on_completion(7, 1_000_000);
        learning.save();
        learning.finish_saving();
        assert_eq!(Learning::new(Some(file)).size().0, 1);
    }

    #[test]
    fn what_has_changed_is_saved_after_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let mut learning = Learning::new(Some(file.clone()));
        let mut half = Half::default();
        let start = learning.saved_at;
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(!learning.is_save_due(later(1000)));
        // However many completions there are, it is the time that counts.
        learning.take(&completions(7, 1_000_000, 50_000), &mut half);
        assert!(!learning.is_save_due(later(59)) && learning.is_save_due(later(60)));
        assert!(!file.exists());
        learning.saved_at -= SAVE_AFTER;
        learning.take(&[], &mut half);
        assert!(!learning.unsaved);
        learning.finish_saving();
        assert_eq!(Learning::new(Some(file)).size().0, 1);
    }

    #[test]
    fn a_state_that_cannot_be_saved_is_no_reason_to_fail() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no/such/folder");
        let (mut learning, mut half) = (Learning::new(Some(file.clone())), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        learning.save();
        learning.finish_saving();
        assert!(!file.exists());
        // It goes on to learn and to rank, and forgets it all at the end.
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.is_in_force() && half.default_table.is_some());
        assert_eq!(learning.size().0, 2);
        assert_eq!(Learning::new(Some(file)).size().0, 0);
    }

    /// A kernel half that takes what it is told until it is to refuse it.
    #[derive(Default)]
    struct Half {
        refuses_tables: bool,
        refuses_to_forget: bool,
        tables: usize,
        default_table: Option<u16>,
    }

    impl Ranking for Half {
        fn set_rank_table(&mut self, _: u16, _: &Table) -> Result<()> {
            anyhow::ensure!(!self.refuses_tables, "no tables");
            self.tables += 1;
            Ok(())
        }

        fn set_default_table(&mut self, id: u16) {
            self.default_table = Some(id);
        }

        fn set_function_table(&mut self, _: u64, _: u16) -> Result<()> {
            Ok(())
        }

        fn forget_function(&mut self, _: u64) -> Result<()> {
            anyhow::ensure!(!self.refuses_to_forget, "it forgets nothing");
            Ok(())
        }

        fn rank_no_more(&mut self) {
            self.default_table = None;
        }
    }

    /// So many completions of one function.
    fn completions(function: u64, service_ns: u64, count: u32) -> Vec<sfs_completion> {
        let one = sfs_completion {
            function,
            service_ns,
            killed: 0,
            counted: 1,
        };
        vec![one; count as usize]
    }

    /// Learns anew at each completion, however long that takes.
    fn learn(learning: &mut Learning, half: &mut Half, completions: &[sfs_completion]) {
        learning.pace = Pace::default();
        learning.since_refresh = REFRESH;
        learning.take(completions, half);
        while learning.has_more() {
            learning.take(&[], half);
        }
    }

    #[test]
    fn a_table_that_is_refused_ends_the_ranks() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(learning.is_in_force() && half.default_table.is_some());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.has_given_up() && !learning.is_in_force());
        assert_eq!(half.default_table, None);
        // Half of the tables would be worse than none: there is no way back.
        half.refuses_tables = false;
        let told = half.tables;
        learn(&mut learning, &mut half, &completions(9, 50_000_000, 200));
        assert_eq!((half.tables, half.default_table), (told, None));
        // It goes on to learn, and says that nothing is ranked.
        assert_eq!(learning.size(), (3, 0));
        let reports = learning.functions(10, |_| None);
        assert!(reports.iter().all(|one| one.rank.is_none()));
    }

    #[test]
    fn the_first_table_may_be_refused_as_well() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(learning.has_given_up() && !learning.is_in_force());
        assert_eq!(half.default_table, None);
    }

    #[test]
    fn a_function_that_is_not_forgotten_ends_the_ranks() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        let few = LearnConfig {
            functions: 8,
            ..LearnConfig::default()
        };
        learning.learner = Learner::new(few);
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        half.refuses_to_forget = true;
        for function in 11..18 {
            learn(
                &mut learning,
                &mut half,
                &completions(function, 2_000_000, 1),
            );
        }
        assert!(learning.is_in_force());
        learn(&mut learning, &mut half, &completions(18, 2_000_000, 1));
        assert!(learning.has_given_up() && half.default_table.is_none());
    }
}
