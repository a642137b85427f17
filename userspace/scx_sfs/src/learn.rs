//! Learning: service times from the kernel half in, rank tables out, and what is
//! known kept in a file. What is learned from them is `sfs_policy::learn`'s.

mod save;

use std::cmp::Reverse;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sfs_policy::learn::{Change, Known, LearnConfig, Learner, Table};
use tracing::{info, warn};

use crate::bpf_intf::{sfs_completion, SFS_FUNCTION_COMM, SFS_FUNCTION_NAMED};
pub use save::write_whole;
use save::Saver;

/// Completions after which the tables are made anew. More often does no better
/// (docs/policy.md).
const REFRESH_EVERY: u32 = 100;

/// Making them takes one part in so many of one CPU at most: with a hundred functions it
/// is a matter of milliseconds, and of as many in a second as there are hundreds of
/// completions.
const REFRESH_SHARE: u32 = 400;

/// But they are not older than this: the first after a start may be those of very many
/// functions.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

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
    fn set_strangers(&mut self, id: u16);

    /// Has `function` use table `id`.
    ///
    /// # Errors
    ///
    /// There are too many functions.
    fn set_function_table(&mut self, function: u64, id: u16) -> Result<()>;

    /// Has `function` use the strangers' table.
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

/// Keeps something that takes long from being done too often.
#[derive(Debug, Default)]
struct Pace {
    not_before: Option<Instant>,
}

impl Pace {
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| now >= time)
    }

    /// It has been done until `end`, and has taken so long.
    fn done(&mut self, busy: Duration, end: Instant) {
        self.not_before = Some(end + REFRESH_AFTER.min(REFRESH_SHARE * busy));
    }
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
            since_refresh: REFRESH_EVERY, // what was restored is told at once
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
        let is_due = self.since_refresh >= REFRESH_EVERY && self.pace.is_due(Instant::now());
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
                Change::Strangers(id) => kernel.set_strangers(id),
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

    /// Says once that a function keeps the rank that it had, or a stranger's.
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

    /// Returns what is known of functions, `most` of them, those with most work first.
    /// `name` has the name of a function that has one.
    ///
    /// Of the others no more is looked at than their work: with 100,000 functions that is a
    /// matter of milliseconds, in which the control loop does nothing else.
    pub fn functions(
        &self,
        most: usize,
        name: impl Fn(u64) -> Option<String>,
    ) -> Vec<FunctionReport> {
        let mut known: Vec<Known<'_>> = self.learner.functions().collect();
        let all: u128 = known.iter().map(|one| u128::from(one.work_ns())).sum();
        if known.len() > most {
            known.select_nth_unstable_by_key(most, |one| Reverse(one.work_ns()));
            known.truncate(most);
        }
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        let mut reports: Vec<FunctionReport> = known
            .iter()
            .map(|one| FunctionReport {
                function: name(one.key()).unwrap_or_else(|| identity_name(one.key())),
                completions: one.completions(),
                p50_ms: ms(one.quantile_ns(0.5)),
                p90_ms: ms(one.quantile_ns(0.9)),
                p99_ms: ms(one.quantile_ns(0.99)),
                rank: one.rank().filter(|_| !self.given_up),
                work_share: one.work_ns() as f64 / all.max(1) as f64,
            })
            .collect();
        reports.sort_by(|a, b| {
            b.work_share
                .total_cmp(&a.work_share)
                .then_with(|| a.function.cmp(&b.function))
        });
        reports
    }
}

/// What is known of one function, as `scx_sfs functions` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionReport {
    /// Its name, or what identifies it.
    pub function: String,
    /// How often it has completed.
    pub completions: u32,
    /// Half of its recent invocations need no more than this CPU time, in ms.
    pub p50_ms: Option<f64>,
    /// 90 % of them.
    pub p90_ms: Option<f64>,
    /// 99 % of them.
    pub p99_ms: Option<f64>,
    /// The rank of a new invocation, lower is earlier; none as long as there are none.
    pub rank: Option<u8>,
    /// Its share (0 to 1) of the CPU time of all.
    pub work_share: f64,
}

fn identity_name(key: u64) -> String {
    if key & NAMED != 0 {
        format!("name:{:x}", key & !NAMED)
    } else {
        format!("comm:{:x}", key & !SFS_FUNCTION_COMM)
    }
}

// bindgen takes the top bit for a sign.
const NAMED: u64 = SFS_FUNCTION_NAMED as u64;

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

/// Prints what the running scheduler knows of functions: the first `count`, those
/// with most work first.
///
/// # Errors
///
/// No scx_sfs answers.
pub fn print_functions(count: usize) -> Result<()> {
    let reports: Vec<FunctionReport> = scx_stats::StatsClient::new()
        .connect(Some(5000))
        .and_then(|mut client| {
            let arguments = vec![
                ("target".to_string(), "functions".to_string()),
                ("count".to_string(), count.to_string()),
            ];
            client.request("stats", arguments)
        })
        .context("no running scx_sfs with --policy learned answers")?;
    let mut out = io::stdout().lock();
    let header = "function completions p50_ms p90_ms p99_ms rank work";
    let columns: Vec<&str> = header.split(' ').collect();
    writeln!(
        out,
        "{:32} {:>11} {:>9} {:>9} {:>9} {:>4} {:>6}",
        columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]
    )?;
    for one in reports.iter().take(count) {
        writeln!(out, "{}", row(one))?;
    }
    Ok(())
}

/// Returns what is known of one function as seven words, whatever its name is.
fn row(one: &FunctionReport) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".into(), |ms| format!("{ms:.1}"));
    format!(
        "{:32} {:>11} {:>9} {:>9} {:>9} {:>4} {:>5.1}%",
        sfs_text::word(&one.function),
        one.completions,
        ms(one.p50_ms),
        ms(one.p90_ms),
        ms(one.p99_ms),
        one.rank.map_or_else(|| "-".into(), |rank| rank.to_string()),
        100.0 * one.work_share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_row() {
        for code in 0..=0xff_u8 {
            let byte = char::from(code);
            for function in [byte.to_string(), format!("a{byte}"), format!("{byte} 1 2")] {
                let report = FunctionReport {
                    function,
                    completions: 3,
                    p50_ms: Some(1.0),
                    p90_ms: None,
                    p99_ms: None,
                    rank: Some(4),
                    work_share: 0.5,
                };
                let row = row(&report);
                assert_eq!(row.split_whitespace().count(), 7, "{row:?}");
                assert!(!row.contains(char::is_control), "{row:?}");
                assert!(
                    row.ends_with(" 3       1.0         -         -    4  50.0%"),
                    "{row:?}"
                );
            }
        }
    }

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
        let mut learning = Learning::new(Some("/nowhere/at/all".into()));
        learning.save();
        learning.finish_saving();
    }

    /// A kernel half that takes what it is told until it is to refuse it.
    #[derive(Default)]
    struct Half {
        refuses_tables: bool,
        refuses_to_forget: bool,
        tables: usize,
        strangers: Option<u16>,
    }

    impl Ranking for Half {
        fn set_rank_table(&mut self, _: u16, _: &Table) -> Result<()> {
            anyhow::ensure!(!self.refuses_tables, "no tables");
            self.tables += 1;
            Ok(())
        }

        fn set_strangers(&mut self, id: u16) {
            self.strangers = Some(id);
        }

        fn set_function_table(&mut self, _: u64, _: u16) -> Result<()> {
            Ok(())
        }

        fn forget_function(&mut self, _: u64) -> Result<()> {
            anyhow::ensure!(!self.refuses_to_forget, "it forgets nothing");
            Ok(())
        }

        fn rank_no_more(&mut self) {
            self.strangers = None;
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
        learning.since_refresh = REFRESH_EVERY;
        learning.take(completions, half);
        while learning.has_more() {
            learning.take(&[], half);
        }
    }

    #[test]
    fn a_table_that_is_refused_ends_the_ranks() {
        let (mut learning, mut half) = (Learning::new(None), Half::default());
        learn(&mut learning, &mut half, &completions(7, 2_000_000, 200));
        assert!(learning.is_in_force() && half.strangers.is_some());
        half.refuses_tables = true;
        learn(&mut learning, &mut half, &completions(8, 900_000_000, 200));
        assert!(learning.has_given_up() && !learning.is_in_force());
        assert_eq!(half.strangers, None);
        // Half of the tables would be worse than none: there is no way back.
        half.refuses_tables = false;
        let told = half.tables;
        learn(&mut learning, &mut half, &completions(9, 50_000_000, 200));
        assert_eq!((half.tables, half.strangers), (told, None));
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
        assert_eq!(half.strangers, None);
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
        assert!(learning.has_given_up() && half.strangers.is_none());
    }

    #[test]
    fn what_takes_long_is_done_seldom() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::default();
        assert!(pace.is_due(start));
        pace.done(Duration::from_millis(5), ms(5));
        assert!(!pace.is_due(ms(2004)));
        assert!(pace.is_due(ms(2005)));
        pace.done(Duration::from_millis(1000), ms(1000));
        assert!(pace.is_due(ms(6000)));
    }

    #[test]
    fn functions_are_listed_by_their_work() {
        let mut learning = Learning::new(None);
        for _ in 0..3 {
            learning.learner.on_completion(1, 1_000_000);
        }
        learning.learner.on_completion(2, 9_000_000);
        let name = |key| (key == 1).then(|| "one".to_string());
        let reports = learning.functions(10, name);
        assert_eq!(reports[0].function, "comm:2");
        assert_eq!(
            (reports[1].function.as_str(), reports[1].completions),
            ("one", 3)
        );
        assert!((reports[0].work_share - 0.75).abs() < 1e-9);
        // The share is that of all, however few are asked for.
        assert_eq!(learning.functions(1, name), reports[..1]);
        assert!(learning.functions(0, name).is_empty());
    }
}
