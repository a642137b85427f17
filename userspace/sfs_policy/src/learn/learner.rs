//! The learner: completions in, tables out.

use super::buckets::{start_ns, BUCKETS};
use super::functions::{Function, Functions, Record};
use super::histogram::{Histogram, MAX_WINDOW, UNIT};
use super::rank::{ranks, Aim, Mass, Ranks};
use super::state::{self, Saved, StateError};
use super::table::{Table, Tables};
use crate::defaults::TABLES;
use alloc::vec::Vec;

/// Most functions that are remembered, by default.
pub const DEFAULT_FUNCTIONS: usize = 100_000;

/// What the learner keeps and how it weighs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnConfig {
    /// Most functions that are remembered; fewer than 8 count as 8.
    pub functions: usize,
    /// Most different tables, the default table included; 0 counts as 1.
    pub tables: u16,
    /// By how many ranks functions that share a table may differ.
    pub tolerance: u8,
    /// Completions after which what is known of a function is halved, 2 to
    /// [`MAX_WINDOW`].
    pub window: u16,
    /// How many completions of its own weigh as much as what is known of all
    /// functions; 0 or more.
    pub prior: f64,
    /// Completions before there are any tables.
    pub warm_up: u32,
    /// What is to be low.
    pub aim: Aim,
}

impl LearnConfig {
    /// What scx_sfs learns with.
    pub const DEFAULT: Self = Self {
        functions: DEFAULT_FUNCTIONS,
        tables: TABLES,
        tolerance: 2,
        window: 128,
        prior: 1.0,
        warm_up: 100,
        aim: Aim::Both,
    };
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What the kernel half must be told, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The table of this number has this content from now on.
    Table(u16, Table),
    /// Functions without a table of their own have this one from now on.
    DefaultTable(u16),
    /// The function has this table from now on.
    Function(u64, u16),
    /// The function is forgotten.
    Forgotten(u64),
}

/// Learns what functions need from their completions.
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
    /// Completions so far, up to the largest number that fits.
    completions: u32,
    /// The distribution that unknown functions are assumed to have, and when it was made.
    prior: Mass,
    prior_made: u32,
    tables: Tables,
    default_table: Option<u16>,
    /// Functions that have changed since the last refresh.
    changed: Vec<u64>,
    forgotten: Vec<u64>,
}

impl Learner {
    /// Memory for each function, in bytes, without the map from keys.
    pub const SLOT_BYTES: usize = size_of::<Function>();

    /// A learner without history.
    pub fn new(config: LearnConfig) -> Self {
        Self {
            functions: Functions::new(config.functions),
            overall: Histogram::default(),
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

    /// An invocation of `function` has completed after `service_ns` of CPU time.
    pub fn on_completion(&mut self, function: u64, service_ns: u64) {
        self.overall.add(service_ns, MAX_WINDOW);
        self.on_uncounted_completion(function, service_ns);
    }

    /// The same, but without effect on the estimate for unknown functions: its tenant
    /// has had its say already.
    pub fn on_uncounted_completion(&mut self, function: u64, service_ns: u64) {
        let window = self.config.window;
        let record = self.touch(function, service_ns);
        record.histogram.doubt(service_ns);
        record.histogram.add(service_ns, window);
    }

    /// An invocation of `function` was killed after `attained_ns` of CPU time.
    pub fn on_kill(&mut self, function: u64, attained_ns: u64) {
        let overall = self.overall.clone();
        self.on_uncounted_kill(function, attained_ns);
        self.overall.add_censored(attained_ns, MAX_WINDOW, &overall);
    }

    /// The same, but without effect on the estimate for unknown functions.
    pub fn on_uncounted_kill(&mut self, function: u64, attained_ns: u64) {
        let overall = self.overall.clone();
        let window = self.config.window;
        let record = self.touch(function, attained_ns);
        record.histogram.add_censored(attained_ns, window, &overall);
    }

    /// Notes one more completion of `function`.
    fn touch(&mut self, function: u64, work_ns: u64) -> &mut Record {
        self.completions = self.completions.saturating_add(1);
        let (slot, forgotten) = self.functions.touch(function);
        if let Some(forgotten) = forgotten {
            self.forget(&forgotten);
        }
        if self.changed.len() > 2 * self.functions.capacity() {
            // Most of them are forgotten, or twice in it.
            self.list_changed();
        }
        let one = self.functions.at(slot);
        if !one.changed {
            one.changed = true;
            self.changed.push(function);
        }
        one.record.work_ns = one.record.work_ns.saturating_add(work_ns);
        &mut one.record
    }

    fn forget(&mut self, function: &Function) {
        if let Some(id) = function.table {
            self.tables.release(id);
            self.forgotten.push(function.record.key);
        }
    }

    /// Makes the tables of what has changed since the last time. Nothing before
    /// the warm-up is over.
    pub fn refresh(&mut self) -> Vec<Change> {
        self.refresh_some(usize::MAX)
    }

    /// As [`refresh`](Self::refresh), but for the first `limit` functions that have
    /// changed only, so that a caller who has other things to do is not kept from them
    /// by very many functions. [`pending`](Self::pending) tells how many are left.
    pub fn refresh_some(&mut self, limit: usize) -> Vec<Change> {
        let gone = limit.min(self.forgotten.len());
        let mut changes: Vec<Change> = self
            .forgotten
            .drain(..gone)
            .map(Change::Forgotten)
            .collect();
        // One that was forgotten may be back among those that have changed: what is
        // forgotten is told first, all of it.
        if !self.forgotten.is_empty() || self.is_warming_up() {
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

    /// How many functions a refresh now would look at: those that have changed or were
    /// forgotten. One that has done both counts twice.
    pub fn pending(&self) -> usize {
        let changed = if self.is_warming_up() {
            0
        } else {
            self.changed.len()
        };
        self.forgotten.len() + changed
    }

    fn is_warming_up(&self) -> bool {
        self.completions < self.config.warm_up.max(1)
    }

    /// Whether the overall distribution may have moved much: a quarter more
    /// completions, or a quarter of its window.
    fn prior_is_old(&self) -> bool {
        let since = self.completions - self.prior_made;
        let quarter = self.prior_made.min(MAX_WINDOW.into()) / 4;
        self.default_table.is_none() || since > quarter
    }

    /// Makes the present overall distribution that of unknown functions.
    /// Functions lean on it from when they next complete, but at first all do.
    fn renew_prior(&mut self, changes: &mut Vec<Change>) {
        let total = f64::from(self.overall.total().max(1));
        let weights = self.overall.weights();
        self.prior = weights.map(|weight| f64::from(weight) / total);
        self.prior_made = self.completions;
        let ranks = ranks(&self.prior, self.config.aim);
        let id = self.exchange(self.default_table, &ranks, changes);
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
        // It may have been forgotten meanwhile.
        let Some(slot) = self.functions.slot(key) else {
            return;
        };
        let one = self.functions.get(slot);
        let (present, mass) = (one.table, self.blend(&one.record.histogram));
        let id = self.exchange(present, &ranks(&mass, self.config.aim), changes);
        let one = self.functions.at(slot);
        one.changed = false;
        if one.table.replace(id) != Some(id) {
            changes.push(Change::Function(key, id));
        }
    }

    fn exchange(&mut self, present: Option<u16>, ranks: &Ranks, changes: &mut Vec<Change>) -> u16 {
        let (id, new) = self.tables.exchange(present, ranks);
        if new {
            changes.push(Change::Table(id, Table::new(*ranks)));
        }
        id
    }

    /// What a function with this history is taken to need: its own completions,
    /// and what is known of all as if it had had that many of them.
    fn blend(&self, own: &Histogram) -> Mass {
        let weights = own.weights();
        core::array::from_fn(|bucket| {
            let own = f64::from(weights[bucket]) / f64::from(UNIT);
            own + self.config.prior.max(0.0) * self.prior[bucket]
        })
    }

    /// A copy of what is known, to be read by [`decode`](Self::decode). Tables
    /// are not in it: they follow from the rest.
    pub fn encode(&self) -> Vec<u8> {
        let records = self.functions.by_age().map(|one| &one.record);
        state::encode(self.completions, &self.overall, records)
    }

    /// What [`encode`](Self::encode) makes bytes of, to have that done elsewhere: the copy
    /// takes a fraction of the time, and memory for each function.
    pub fn snapshot(&self) -> Snapshot {
        let records = self.functions.by_age().map(|one| one.record.clone());
        Snapshot(Saved {
            completions: self.completions,
            overall: self.overall.clone(),
            records: records.collect(),
        })
    }

    /// The learner that [`encode`](Self::encode) has made `bytes` of. Functions
    /// for which `config` has no room are left out.
    ///
    /// # Errors
    /// If the bytes are of another version, cut off or damaged.
    pub fn decode(config: LearnConfig, bytes: &[u8]) -> Result<Self, StateError> {
        let saved = state::decode(bytes)?;
        let mut this = Self::new(config);
        this.completions = saved.completions;
        this.overall = saved.overall;
        // The oldest come first.
        let spare = saved
            .records
            .len()
            .saturating_sub(this.functions.capacity());
        for record in saved.records.into_iter().skip(spare) {
            if !this.functions.restore(record) {
                return Err(StateError::Damaged);
            }
        }
        Ok(this)
    }

    /// What is known of each function, in no particular order.
    pub fn functions(&self) -> impl Iterator<Item = Known<'_>> {
        self.functions.by_age().map(|one| Known {
            record: &one.record,
            table: one.table.map(|id| self.tables.ranks(id)),
        })
    }

    /// How many functions are remembered.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many different tables there are.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Whether functions have tables: the warm-up is over.
    pub fn is_ready(&self) -> bool {
        self.default_table.is_some()
    }

    /// The table of `function`, or the default table; none before there are any.
    pub fn table(&self, function: u64) -> Option<Table> {
        let slot = self.functions.slot(function);
        let own = slot.and_then(|slot| self.functions.get(slot).table);
        let id = own.or(self.default_table)?;
        Some(Table::new(*self.tables.ranks(id)))
    }
}

/// What a [`Learner`] knew at a time.
#[derive(Debug)]
pub struct Snapshot(Saved);

impl Snapshot {
    /// The same bytes as [`Learner::encode`] had at that time.
    pub fn encode(&self) -> Vec<u8> {
        let Saved {
            completions,
            overall,
            records,
        } = &self.0;
        state::encode(*completions, overall, records.iter())
    }
}

/// What is known of one function.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    record: &'a Record,
    table: Option<&'a Ranks>,
}

impl Known<'_> {
    /// What it is called.
    pub fn key(&self) -> u64 {
        self.record.key
    }

    /// How often it has completed while it was remembered.
    pub fn completions(&self) -> u32 {
        self.record.completions
    }

    /// The CPU time of all these completions, in ns.
    pub fn work_ns(&self) -> u64 {
        self.record.work_ns
    }

    /// The service time that `share` (0 to 1) of its recent completions do not
    /// exceed, in ns, rounded up to the end of a bucket; none if there are none.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let bucket = self.record.histogram.quantile(share)?;
        Some(start_ns(bucket + 1))
    }

    /// The rank of an invocation of it that has not begun; none before there are
    /// tables.
    pub fn rank(&self) -> Option<u8> {
        self.table.map(|ranks| ranks[0])
    }
}
