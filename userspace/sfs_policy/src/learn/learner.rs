//! The learner: completions in, tables out.

use super::buckets::{start_ns, BUCKETS};
use super::burst::Burst;
use super::density::Spread;
use super::functions::{Function, Functions, Record};
use super::histogram::{Histogram, MAX_WINDOW};
use super::rank::{doublings, ranks, Aim, Mass};
use super::state::{self, Saved, StateError};
use super::table::{Shape, Table, Tables};
use crate::defaults::TABLES;
use alloc::vec::Vec;

/// Default of the maximum number of functions remembered.
pub const DEFAULT_FUNCTIONS: usize = 100_000;

/// Limits and weights of the learner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnConfig {
    /// Maximum number of functions remembered; fewer than 8 count as 8.
    pub functions: usize,
    /// Maximum number of different tables, including the default table; 0 counts as 1.
    pub tables: u16,
    /// Maximum difference between the ranks of functions that share a table.
    pub tolerance: u8,
    /// Number of completions after which the weights of a function are halved, 2 to
    /// [`MAX_WINDOW`].
    pub window: u16,
    /// Weight of the overall distribution in the estimate of a function, in completions; 0 or
    /// more.
    pub prior: f64,
    /// The quantity to minimize.
    pub aim: Aim,
}

impl LearnConfig {
    /// The settings of scx_sfs.
    pub const DEFAULT: Self = Self {
        functions: DEFAULT_FUNCTIONS,
        tables: TABLES,
        tolerance: 2,
        window: 128,
        prior: 1.0,
        aim: Aim::Both,
    };
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The end of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The function.
    pub function: u64,
    /// CPU time that it has used, in ns.
    pub service_ns: u64,
    /// Of that, the CPU time before it first slept for 1 ms or more, in ns; 0: it never did.
    pub burst_ns: u64,
    /// A signal ended it: it may have needed more.
    pub killed: bool,
    /// Whether it counts for the estimate of unknown functions: its tenant has not contributed
    /// its share yet.
    pub counted: bool,
}

impl End {
    /// The CPU time before the first sleep after which there was more to do. A server sleeps
    /// between two requests as well.
    fn burst(&self) -> Option<u64> {
        let rest = self.service_ns.saturating_sub(self.burst_ns);
        (self.burst_ns > 0 && rest > self.service_ns / 8).then_some(self.burst_ns)
    }
}

/// An update for the kernel half. Updates must be applied in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The new content of the table with this number.
    Table(u16, Table),
    /// The new table of functions without a table of their own.
    DefaultTable(u16),
    /// The new table of this function.
    Function(u64, u16),
    /// This function is forgotten.
    Forgotten(u64),
}

/// Learns the service times of functions from their completions.
///
/// # Example
///
/// ```
/// use sfs_policy::learn::{Change, LearnConfig, Learner};
///
/// let mut learner = Learner::new(LearnConfig::default());
/// for _ in 0..100 {
///     learner.on_completion(7, 2_000_000);
///     learner.on_completion(8, 900_000_000);
/// }
/// learner.refresh();
/// let rank = |function| learner.table(function).unwrap().rank(0);
/// // Short before unknown before long.
/// assert!(rank(7) < rank(9) && rank(9) < rank(8));
/// ```
#[derive(Debug, Clone)]
pub struct Learner {
    config: LearnConfig,
    functions: Functions,
    overall: Histogram,
    /// By how much service times of one function differ.
    spread: Spread,
    /// When invocations of any function first block.
    burst: Burst,
    /// Number of completions so far, saturating.
    completions: u32,
    /// The distribution assumed for unknown functions, and when it was made.
    prior: Mass,
    prior_made: u32,
    tables: Tables,
    default_table: Option<u16>,
    /// Functions that have changed since the last refresh.
    changed: Vec<u64>,
    forgotten: Vec<u64>,
}

impl Learner {
    /// Memory for each function, in bytes, without the map of keys.
    pub const SLOT_BYTES: usize = size_of::<Function>();

    /// A learner without history.
    pub fn new(config: LearnConfig) -> Self {
        Self {
            functions: Functions::new(config.functions),
            overall: Histogram::default(),
            spread: Spread::default(),
            burst: Burst::default(),
            completions: 0,
            prior: [0.0; BUCKETS],
            prior_made: 0,
            tables: Tables::new(config.tables, config.tolerance),
            default_table: None,
            changed: Vec::new(),
            forgotten: Vec::new(),
            config,
        }
    }

    /// Notes the end of an invocation.
    pub fn on_end(&mut self, end: End) {
        match (end.killed, end.counted) {
            (true, true) => return self.on_kill(end.function, end.service_ns),
            (true, false) => return self.on_uncounted_kill(end.function, end.service_ns),
            (false, _) => {}
        }
        let burst = end.burst();
        if end.counted {
            self.overall.add(end.service_ns, MAX_WINDOW);
            self.burst.note(burst);
        }
        let record = self.complete(end.function, end.service_ns);
        record.burst.note(burst);
    }

    /// Notes that an invocation of `function` completed after `service_ns` of CPU time.
    pub fn on_completion(&mut self, function: u64, service_ns: u64) {
        self.overall.add(service_ns, MAX_WINDOW);
        self.on_uncounted_completion(function, service_ns);
    }

    /// The same, but without effect on the estimate for unknown functions: its tenant has
    /// already contributed its share. It still counts for how much the service times of one
    /// function differ, where a tenant that lies can do little: the width of estimates has a
    /// limit, and the completions of a function soon outweigh those of others.
    pub fn on_uncounted_completion(&mut self, function: u64, service_ns: u64) {
        self.complete(function, service_ns);
    }

    /// Notes a completion in the record of `function`, which it returns.
    fn complete(&mut self, function: u64, service_ns: u64) -> &mut Record {
        let window = self.config.window;
        let slot = self.touch(function, service_ns);
        let record = &mut self.functions.at(slot).record;
        self.spread.note(&record.histogram, service_ns);
        record.histogram.doubt(service_ns);
        record.histogram.add(service_ns, window);
        record
    }

    /// Notes that an invocation of `function` was killed after `attained_ns` of CPU time.
    pub fn on_kill(&mut self, function: u64, attained_ns: u64) {
        let overall = self.overall.clone();
        self.on_uncounted_kill(function, attained_ns);
        self.overall.add_censored(attained_ns, MAX_WINDOW, &overall);
    }

    /// The same, but without effect on the estimate for unknown functions.
    pub fn on_uncounted_kill(&mut self, function: u64, attained_ns: u64) {
        let overall = self.overall.clone();
        let window = self.config.window;
        let slot = self.touch(function, attained_ns);
        let histogram = &mut self.functions.at(slot).record.histogram;
        histogram.add_censored(attained_ns, window, &overall);
    }

    /// Counts one more completion of `function`. Returns its slot.
    fn touch(&mut self, function: u64, work_ns: u64) -> usize {
        self.completions = self.completions.saturating_add(1);
        let (slot, forgotten) = self.functions.touch(function);
        if let Some(forgotten) = forgotten {
            self.forget(&forgotten);
        }
        if self.changed.len() > 2 * self.functions.capacity() {
            // Most entries are forgotten functions or duplicates.
            self.list_changed();
        }
        let one = self.functions.at(slot);
        if !one.changed {
            one.changed = true;
            self.changed.push(function);
        }
        one.record.work_ns = one.record.work_ns.saturating_add(work_ns);
        slot
    }

    fn forget(&mut self, function: &Function) {
        if let Some(id) = function.table {
            self.tables.release(id);
            self.forgotten.push(function.record.key);
        }
    }

    /// Recomputes the tables of functions that have changed since the last call. The first call
    /// also returns the default table, which orders by attained service as long as there is no
    /// history.
    pub fn refresh(&mut self) -> Vec<Change> {
        self.refresh_some(usize::MAX)
    }

    /// As [`refresh`](Self::refresh), but only for the first `limit` changed functions, so that
    /// very many functions do not keep a caller from other work. [`pending`](Self::pending)
    /// returns how many are left.
    pub fn refresh_some(&mut self, limit: usize) -> Vec<Change> {
        let gone = limit.min(self.forgotten.len());
        let mut changes: Vec<Change> = self
            .forgotten
            .drain(..gone)
            .map(Change::Forgotten)
            .collect();
        // A forgotten function may be back among the changed ones, so all forgotten functions
        // are reported first.
        if !self.forgotten.is_empty() {
            return changes;
        }
        if self.prior_is_old() {
            self.renew_prior(&mut changes);
        }
        let mut changed = core::mem::take(&mut self.changed);
        let some = (limit - gone).min(changed.len());
        for key in changed.drain(..some) {
            self.renew(key, &mut changes);
        }
        self.changed = changed;
        changes
    }

    /// Number of functions that a refresh would process now: changed or forgotten. A function
    /// that is both counts twice.
    pub fn pending(&self) -> usize {
        self.forgotten.len() + self.changed.len()
    }

    /// Whether the overall distribution may have moved much: a quarter more completions, or a
    /// quarter of its window.
    fn prior_is_old(&self) -> bool {
        let since = self.completions - self.prior_made;
        let quarter = self.prior_made.min(MAX_WINDOW.into()) / 4;
        self.default_table.is_none() || since > quarter
    }

    /// Makes the current overall distribution that of unknown functions. Functions use it from
    /// their next completion on; the first time, all are marked as changed.
    fn renew_prior(&mut self, changes: &mut Vec<Change>) {
        let total = f64::from(self.overall.total().max(1));
        let weights = self.overall.weights();
        self.prior = weights.map(|weight| f64::from(weight) / total);
        self.prior_made = self.completions;
        let ranks = match self.overall.total() {
            0 => doublings(),
            _ => ranks(&self.prior, self.config.aim),
        };
        let shape = Shape {
            ranks,
            burst: self.burst.usual(),
        };
        let id = self.exchange(self.default_table, &shape, changes);
        let before = self.default_table.replace(id);
        if before != Some(id) {
            changes.push(Change::DefaultTable(id));
        }
        if before.is_none() {
            self.change_all();
        }
    }

    fn change_all(&mut self) {
        for slot in 0..self.functions.len() {
            self.functions.at(slot).changed = true;
        }
        self.list_changed();
    }

    fn list_changed(&mut self) {
        self.changed.clear();
        let changed = self.functions.by_age().filter(|one| one.changed);
        self.changed.extend(changed.map(|one| one.record.key));
    }

    fn renew(&mut self, key: u64, changes: &mut Vec<Change>) {
        // It may have been forgotten since.
        let Some(slot) = self.functions.slot(key) else {
            return;
        };
        let one = self.functions.get(slot);
        let (present, mass) = (one.table, self.blend(&one.record.histogram));
        let burst = match one.record.burst.is_known() {
            true => one.record.burst,
            false => self.burst,
        };
        let shape = Shape {
            ranks: ranks(&mass, self.config.aim),
            burst: burst.usual(),
        };
        let id = self.exchange(present, &shape, changes);
        let one = self.functions.at(slot);
        one.changed = false;
        if one.table.replace(id) != Some(id) {
            changes.push(Change::Function(key, id));
        }
    }

    fn exchange(&mut self, present: Option<u16>, shape: &Shape, changes: &mut Vec<Change>) -> u16 {
        let (id, new) = self.tables.exchange(present, shape);
        if new {
            changes.push(Change::Table(id, Table::of(*shape)));
        }
        id
    }

    /// The assumed distribution of a function with this history: what its own completions say, plus
    /// the overall distribution with the weight of `prior` completions.
    fn blend(&self, own: &Histogram) -> Mass {
        let own = self.spread.estimate(own);
        let prior = self.config.prior.max(0.0);
        core::array::from_fn(|bucket| own[bucket] + prior * self.prior[bucket])
    }

    /// Encodes the learned state, to be read by [`decode`](Self::decode). Tables are not
    /// included: they follow from the rest.
    pub fn encode(&self) -> Vec<u8> {
        let records = self.functions.by_age().map(|one| &one.record);
        state::encode(self.completions, &self.overall, records)
    }

    /// A copy of the state for [`encode`](Self::encode), to run that elsewhere. Copying takes a
    /// fraction of the time of encoding, and memory for each function.
    pub fn snapshot(&self) -> Snapshot {
        let records = self.functions.by_age().map(|one| one.record.clone());
        Snapshot(Saved {
            completions: self.completions,
            overall: self.overall.clone(),
            records: records.collect(),
        })
    }

    /// The learner from the `bytes` of [`encode`](Self::encode). Functions for which `config`
    /// has no room are left out.
    ///
    /// # Errors
    /// If the bytes are of another version, truncated or damaged.
    pub fn decode(config: LearnConfig, bytes: &[u8]) -> Result<Self, StateError> {
        let saved = state::decode(bytes)?;
        let mut this = Self::new(config);
        this.completions = saved.completions;
        this.overall = saved.overall;
        // The oldest are first.
        let spare = saved
            .records
            .len()
            .saturating_sub(this.functions.capacity());
        for record in saved.records.into_iter().skip(spare) {
            this.spread.add_all(&record.histogram);
            if !this.functions.restore(record) {
                return Err(StateError::Damaged);
            }
        }
        Ok(this)
    }

    /// The learned state of each function, in no particular order.
    pub fn functions(&self) -> impl Iterator<Item = Known<'_>> {
        self.functions.by_age().map(|one| Known {
            record: &one.record,
            table: one.table.map(|id| self.tables.shape(id)),
        })
    }

    /// Number of functions remembered.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether no function is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of completions so far, saturating.
    pub fn completions(&self) -> u32 {
        self.completions
    }

    /// Number of different tables.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The table of `function`, or the default table; None before the first refresh.
    pub fn table(&self, function: u64) -> Option<Table> {
        let slot = self.functions.slot(function);
        let own = slot.and_then(|slot| self.functions.get(slot).table);
        let id = own.or(self.default_table)?;
        Some(Table::of(*self.tables.shape(id)))
    }
}

/// The state of a [`Learner`] at one time.
#[derive(Debug)]
pub struct Snapshot(Saved);

impl Snapshot {
    /// The same bytes as [`Learner::encode`] returned at that time.
    pub fn encode(&self) -> Vec<u8> {
        let Saved {
            completions,
            overall,
            records,
        } = &self.0;
        state::encode(*completions, overall, records.iter())
    }
}

/// The learned state of one function.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    record: &'a Record,
    table: Option<&'a Shape>,
}

impl Known<'_> {
    /// Its key.
    pub fn key(&self) -> u64 {
        self.record.key
    }

    /// Number of completions while it was remembered.
    pub fn completions(&self) -> u32 {
        self.record.completions
    }

    /// The total CPU time of these completions, in ns.
    pub fn work_ns(&self) -> u64 {
        self.record.work_ns
    }

    /// The quantile `share` (0 to 1) of its recent service times, in ns, rounded up to the end
    /// of a bucket; None without completions.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let bucket = self.record.histogram.quantile(share)?;
        Some(start_ns(bucket + 1))
    }

    /// The rank of a new invocation of it; None before the first refresh.
    pub fn rank(&self) -> Option<u8> {
        self.table.map(|shape| shape.first())
    }
}
