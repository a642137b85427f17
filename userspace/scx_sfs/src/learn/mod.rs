//! Learning: takes service times from the kernel half, hands back rank tables, and keeps the
//! learned state in a file. The learning itself is in `sfs_policy::learn`.

mod pace;
mod report;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use sfs_bpf::kernel::Ranking;
use sfs_policy::defaults::{REFRESH, REFRESH_AT_A_TIME};
use sfs_policy::learn::{Change, LearnConfig, Learner};
use sfs_state::save::Saver;
use tracing::{info, warn};

use pace::Pace;
use sfs_bpf::bpf_intf::sfs_completion;

/// Interval at which changed state is saved, besides at the end. It is a time and not a number
/// of completions, so that no workload can control how much is written.
const SAVE_AFTER: Duration = Duration::from_secs(60);

/// The loader's knowledge about functions.
pub struct Learning {
    learner: Learner,
    /// The kernel half has rejected an update; ranking has stopped.
    given_up: bool,
    saver: Option<Saver>,
    since_refresh: u32,
    /// Whether there is new state that the saver has not received.
    unsaved: bool,
    saved_at: Instant,
    complained: bool,
    pace: Pace,
    round: Option<Round>,
}

/// One round of updates for the functions whose tables were due.
#[derive(Debug)]
struct Round {
    /// Upper bound of functions left.
    left: usize,
    /// Time spent on this round so far.
    busy: Duration,
}

impl Learning {
    /// Starts with the state in `file`, or empty. A missing file is created later; an unusable
    /// one is reported and replaced.
    pub fn new(file: Option<PathBuf>) -> Self {
        let learner = file.as_deref().map_or_else(fresh, restore);
        Self {
            learner,
            given_up: false,
            saver: file.and_then(start_saver),
            since_refresh: REFRESH, // pass on the restored state at once
            unsaved: false,
            saved_at: Instant::now(),
            complained: false,
            pace: Pace::default(),
            round: None,
        }
    }

    /// Takes completions and passes the resulting updates, or a part of them, to the kernel
    /// half: [`has_more`](Self::has_more) tells whether to call again at once. If the kernel
    /// half rejects an update, this is logged and ranking stops. Service times are still
    /// learned for the next start.
    pub fn take(&mut self, completions: &[sfs_completion], kernel: &mut impl Ranking) {
        for one in completions {
            let (killed, counted) = (one.killed != 0, one.counted != 0);
            self.learner
                .on_end(one.function, one.service_ns, killed, counted);
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

    /// A kernel half with half of the tables would rank arbitrarily, so ranking stops.
    fn give_up(&mut self, error: &anyhow::Error, kernel: &mut impl Ranking) {
        kernel.rank_no_more();
        self.given_up = true;
        self.round = None;
        warn!(
            "{error:#}: functions are no longer ranked, but scheduled as with --policy sfs \
             until the next start"
        );
    }

    /// Returns whether more updates for the kernel half are due at once.
    pub fn has_more(&self) -> bool {
        self.round.is_some()
    }

    /// Passes a part of the changes to the kernel half.
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
        // Later changes belong to the next round; otherwise this one might never end.
        round.left = (round.left.saturating_sub(REFRESH_AT_A_TIME)).min(self.learner.pending());
        if round.left > 0 {
            self.round = Some(round);
        } else {
            self.pace.done(round.busy, end);
        }
        Ok(())
    }

    fn tell(&mut self, kernel: &mut impl Ranking) -> Result<()> {
        let was_ready = self.learner.is_ready();
        for change in self.learner.refresh_some(REFRESH_AT_A_TIME) {
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
            info!("functions are now ranked by their learned service times");
        }
        Ok(())
    }

    /// Logs once that a function keeps its old rank, or that of the default table.
    fn complain(&mut self, error: &anyhow::Error) {
        if !self.complained {
            self.complained = true;
            warn!("{error:#}: such functions keep their previous rank");
        }
    }

    /// Returns whether it is time to save and the previous save has reached the disk. So a slow
    /// disk gets no more than it can take.
    fn is_save_due(&self, now: Instant) -> bool {
        let is_time = self.unsaved && now.saturating_duration_since(self.saved_at) >= SAVE_AFTER;
        is_time && self.saver.as_ref().is_some_and(Saver::is_idle)
    }

    /// Queues the learned state for saving, if there is a file. Does not wait. A failure is
    /// logged and does not stop the loader.
    pub fn save(&mut self) {
        self.unsaved = false;
        self.saved_at = Instant::now();
        if let Some(saver) = &self.saver {
            saver.save(self.learner.snapshot());
        }
    }

    /// Waits until everything is saved. Nothing is saved after this.
    pub fn finish_saving(&mut self) {
        drop(self.saver.take());
    }

    /// Returns whether functions are ranked: tables exist, and the kernel half has taken them.
    pub fn is_in_force(&self) -> bool {
        self.learner.is_ready() && !self.given_up
    }

    /// Returns whether ranking has stopped until the next start.
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Returns the number of known functions and of the tables that rank them.
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
    let failed = |error: &io::Error| warn!("cannot save what is learned: {error}");
    started.inspect_err(failed).ok()
}

fn restore(file: &Path) -> Learner {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fresh(),
        Err(error) => {
            warn!(
                "cannot read {}: {error}; learning from scratch",
                file.display()
            );
            return fresh();
        }
    };
    match Learner::decode(LearnConfig::default(), &bytes) {
        Ok(learner) => learner,
        Err(error) => {
            warn!(
                "{} is unusable: {error}; learning from scratch",
                file.display()
            );
            fresh()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_policy::learn::Table;

    #[test]
    fn a_corrupt_state_is_tolerated() {
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
    fn changes_are_saved_after_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let mut learning = Learning::new(Some(file.clone()));
        let mut half = Half::default();
        let start = learning.saved_at;
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(!learning.is_save_due(later(1000)));
        // The time counts, not the number of completions.
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
    fn a_state_that_cannot_be_saved_is_tolerated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no/such/folder");
        let (mut learning, mut half) = (Learning::new(Some(file.clone())), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        learning.save();
        learning.finish_saving();
        assert!(!file.exists());
        // It continues to learn and to rank, and forgets everything at the end.
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.is_in_force() && half.default_table.is_some());
        assert_eq!(learning.size().0, 2);
        assert_eq!(Learning::new(Some(file)).size().0, 0);
    }

    /// A kernel half that accepts updates until told to reject them.
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

    /// Returns `count` completions of one function.
    fn completions(function: u64, service_ns: u64, count: u32) -> Vec<sfs_completion> {
        let one = sfs_completion {
            function,
            service_ns,
            killed: 0,
            counted: 1,
        };
        vec![one; count as usize]
    }

    /// Refreshes after these completions, regardless of the pace.
    fn learn(learning: &mut Learning, half: &mut Half, completions: &[sfs_completion]) {
        learning.pace = Pace::default();
        learning.since_refresh = REFRESH;
        learning.take(completions, half);
        while learning.has_more() {
            learning.take(&[], half);
        }
    }

    #[test]
    fn a_refused_table_ends_the_ranks() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(learning.is_in_force() && half.default_table.is_some());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.has_given_up() && !learning.is_in_force());
        assert_eq!(half.default_table, None);
        // Half of the tables would be worse than none, so there is no way back.
        half.refuses_tables = false;
        let told = half.tables;
        learn(&mut learning, &mut half, &completions(9, 50_000_000, 200));
        assert_eq!((half.tables, half.default_table), (told, None));
        // It continues to learn, and reports that nothing is ranked.
        assert_eq!(learning.size(), (3, 0));
        let reports = learning.functions(10, |_| None);
        assert_eq!(reports.len(), 3);
        assert!(reports.iter().all(|one| one.rank.is_none()));
    }

    #[test]
    fn even_the_first_table_may_be_refused() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(learning.has_given_up() && !learning.is_in_force());
        assert_eq!(half.default_table, None);
    }

    #[test]
    fn a_function_that_cannot_be_forgotten_ends_the_ranks() {
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
