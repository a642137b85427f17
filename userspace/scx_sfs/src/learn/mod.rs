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
use sfs_policy::defaults::REFRESH_AT_A_TIME;
use sfs_policy::learn::{refresh_after, wake_after, Change, End, LearnConfig, Learner};
use sfs_state::save::Saver;
use tracing::warn;

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
    /// Completions since the last refresh.
    since_refresh: u32,
    /// Number of completions after which the kernel half wakes the loader up; 0: not set yet.
    batch: u32,
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
            since_refresh: u32::MAX, // pass on the restored state at once
            batch: 0,
            unsaved: false,
            saved_at: Instant::now(),
            complained: false,
            pace: Pace::default(),
            round: None,
        }
    }

    /// Takes completions and passes the resulting updates, or a part of them, to the kernel
    /// half: [`due_in`](Self::due_in) tells when to call again. The first call sets the table
    /// of unknown functions; without history it ranks by attained service. If the kernel half
    /// rejects an update, this is logged and ranking stops. Service times are still learned for
    /// the next start.
    pub fn take(&mut self, completions: &[sfs_completion], kernel: &mut impl Ranking) {
        for one in completions {
            self.learner.on_end(End {
                function: one.function,
                service_ns: one.service_ns,
                burst_ns: one.burst_ns,
                killed: one.killed != 0,
                counted: one.counted != 0,
            });
        }
        let count = completions.len() as u32;
        self.since_refresh = self.since_refresh.saturating_add(count);
        self.unsaved |= count > 0;
        if self.due_in(Instant::now()) == Some(Duration::ZERO) {
            if let Err(error) = self.go_on(kernel) {
                self.give_up(&error, kernel);
            }
        }
        self.set_batch(kernel);
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
            policy = "sfs",
            "{error:#}: functions are no longer ranked, but scheduled as with --policy sfs \
             until the next start"
        );
    }

    /// Returns how long more updates for the kernel half have to wait at `now`, or None if there
    /// are none.
    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        if self.given_up {
            return None;
        }
        if self.round.is_some() {
            return Some(Duration::ZERO);
        }
        let is_due = self.since_refresh >= refresh_after(self.learner.completions());
        is_due.then(|| self.pace.left(now))
    }

    /// Tells the kernel half after how many completions the loader wants to be woken up.
    fn set_batch(&mut self, kernel: &mut impl Ranking) {
        let batch = wake_after(self.learner.completions());
        if batch != self.batch {
            self.batch = batch;
            kernel.set_completion_batch(batch);
        }
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

    /// Returns whether ranking has stopped until the next start, because the kernel half has
    /// rejected an update.
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
        assert!(!learning.has_given_up() && half.default_table.is_some());
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
        batch: u32,
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

        fn set_completion_batch(&mut self, completions: u32) {
            self.batch = completions;
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
            burst_ns: 0,
            turnaround_ns: 0,
            queued_ns: 0,
            killed: 0,
            counted: 1,
        };
        vec![one; count as usize]
    }

    /// Refreshes after these completions, regardless of the pace.
    fn learn(learning: &mut Learning, half: &mut Half, completions: &[sfs_completion]) {
        learning.pace = Pace::default();
        learning.since_refresh = u32::MAX;
        learning.take(completions, half);
        while learning.round.is_some() {
            learning.take(&[], half);
        }
    }

    #[test]
    fn there_are_ranks_before_the_first_completion() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learning.take(&[], &mut half);
        assert_eq!((half.tables, half.default_table), (1, Some(0)));
        assert_eq!(learning.size(), (0, 1));
        assert_eq!(half.batch, 1);
        assert_eq!(learning.due_in(Instant::now()), None);
    }

    #[test]
    fn each_of_the_first_completions_is_due() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learning.take(&[], &mut half);
        let pause = learning.pace.left(Instant::now());
        learning.take(&completions(7, 2_000_000, 1), &mut half);
        let due = learning.due_in(Instant::now());
        assert!(due.is_none_or(|due| due <= pause), "{due:?}, {pause:?}");
        learn(&mut learning, &mut half, &[]);
        assert!(learning.functions(1, |_| None)[0].rank.is_some());
    }

    #[test]
    fn the_more_is_known_the_fewer_wake_ups() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        // However slow this machine is: what is due waits for the next learn().
        let pause = |learning: &mut Learning| {
            learning
                .pace
                .done(Duration::from_secs(1000), Instant::now());
        };
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 1000));
        pause(&mut learning);
        assert_eq!(half.batch, 20);
        learning.take(&completions(7, 2_000_000, 20), &mut half);
        assert!(learning.due_in(Instant::now()).is_some());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 99_000));
        pause(&mut learning);
        assert_eq!(half.batch, 256);
        learning.take(&completions(7, 2_000_000, 99), &mut half);
        assert_eq!(learning.due_in(Instant::now()), None);
        learning.take(&completions(7, 2_000_000, 1), &mut half);
        assert!(learning.due_in(Instant::now()).is_some());
    }

    #[test]
    fn a_refused_table_ends_the_ranks() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(!learning.has_given_up() && half.default_table.is_some());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.has_given_up());
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
        learning.take(&[], &mut half);
        assert!(learning.has_given_up());
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
        assert!(!learning.has_given_up());
        learn(&mut learning, &mut half, &completions(18, 2_000_000, 1));
        assert!(learning.has_given_up() && half.default_table.is_none());
    }
}
