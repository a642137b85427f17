//! Sources of the tables.

use crate::job::JobId;
use crate::policy::Settings;
use faas_data::trace::Invocation;
use sfs_policy::learn::buckets::{bucket, BUCKETS};
use sfs_policy::learn::rank::{doublings, ranks, Mass, Ranks};
use sfs_policy::learn::{refresh_after, Change, Learner, Table};
use std::collections::HashMap;
use std::fmt::Debug;

/// Buckets per power of two.
const OCTAVE: usize = 4;

/// A source of tables.
pub trait Rule: Debug {
    /// The table of the invocation `id`.
    fn table(&self, id: JobId) -> &Table;

    /// Records that `id` completed after `service_ns` of CPU time.
    fn completed(&mut self, _id: JobId, _service_ns: u64) {}
}

/// Numbers the functions of a trace in order of first appearance.
#[derive(Debug, Default)]
struct Numbers<'a>(HashMap<&'a str, u32>);

impl<'a> Numbers<'a> {
    fn of(&mut self, name: &'a str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }

    fn of_all(&mut self, trace: &'a [Invocation]) -> Vec<u32> {
        trace.iter().map(|one| self.of(&one.function)).collect()
    }
}

/// The table with these ranks, in groups of `level` equal ranks.
fn table(ranks: Ranks, level: u8) -> Table {
    Table::new(ranks.map(|rank| rank / level * level))
}

/// `learned`: the tables that the loader of scx_sfs publishes, as the kernel
/// half applies them.
#[derive(Debug)]
pub struct Learned {
    learner: Learner,
    /// Completions between two refreshes, if that is given.
    refresh: Option<u32>,
    /// Completions since the last refresh.
    since: u32,
    level: u8,
    /// The function of each invocation.
    function: Vec<u32>,
    tables: Vec<Table>,
    /// The table of each function that has one of its own.
    own: HashMap<u64, u16>,
    default_table: u16,
}

impl Learned {
    /// Learns from the history in `settings` at once, and from the completions
    /// of `trace` as they happen.
    pub fn new(settings: &Settings, trace: &[Invocation]) -> Self {
        let mut numbers = Numbers::default();
        let function = numbers.of_all(trace);
        let mut learner = Learner::new(settings.learn);
        for (name, us) in &settings.history {
            learner.on_completion(numbers.of(name).into(), us * 1000);
        }
        let mut this = Self {
            learner,
            refresh: settings.mechanics.refresh,
            since: 0,
            level: settings.mechanics.level,
            function,
            tables: Vec::new(),
            own: HashMap::new(),
            default_table: 0,
        };
        this.publish();
        this
    }

    fn publish(&mut self) {
        for change in self.learner.refresh() {
            match change {
                Change::Table(id, content) => {
                    let (id, content) = (usize::from(id), table(content.rank, self.level));
                    self.tables.resize(self.tables.len().max(id + 1), content);
                    self.tables[id] = content;
                }
                Change::DefaultTable(id) => self.default_table = id,
                Change::Function(key, id) => drop(self.own.insert(key, id)),
                Change::Forgotten(key) => drop(self.own.remove(&key)),
            }
        }
    }
}

impl Rule for Learned {
    fn table(&self, id: JobId) -> &Table {
        let key = u64::from(self.function[id as usize]);
        let id = self.own.get(&key).unwrap_or(&self.default_table);
        &self.tables[usize::from(*id)]
    }

    fn completed(&mut self, id: JobId, service_ns: u64) {
        let key = self.function[id as usize].into();
        self.learner.on_completion(key, service_ns);
        self.since += 1;
        let known = self.learner.completions();
        if self.since >= self.refresh.unwrap_or(refresh_after(known)) {
            self.since = 0;
            self.publish();
        }
    }
}

/// `known`: the distribution of each function's service times in the trace.
#[derive(Debug)]
pub struct Known {
    function: Vec<u32>,
    tables: Vec<Table>,
}

impl Known {
    /// Takes the distributions from `trace`.
    pub fn new(settings: &Settings, trace: &[Invocation]) -> Self {
        let mut numbers = Numbers::default();
        let function = numbers.of_all(trace);
        let mut masses = vec![[0.0; BUCKETS]; numbers.0.len()];
        for (one, function) in trace.iter().zip(&function) {
            let mass: &mut Mass = &mut masses[*function as usize];
            mass[bucket(one.service_us() * 1000)] += 1.0;
        }
        let ranks = masses.iter().map(|mass| ranks(mass, settings.learn.aim));
        let level = settings.mechanics.level;
        Self {
            tables: ranks.map(|ranks| table(ranks, level)).collect(),
            function,
        }
    }
}

impl Rule for Known {
    fn table(&self, id: JobId) -> &Table {
        &self.tables[self.function[id as usize] as usize]
    }
}

/// `mlfq`: one level per power of two of attained service.
#[derive(Debug)]
pub struct Levels(Table);

impl Levels {
    /// The ranks of `learned` without history.
    pub fn doubling() -> Self {
        Self(Table::new(doublings()))
    }
}

impl Rule for Levels {
    fn table(&self, _id: JobId) -> &Table {
        &self.0
    }
}

/// `mean`: the mean service time of each function so far, rounded up to a power
/// of two; 0 for a function without completions.
#[derive(Debug)]
pub struct Means {
    function: Vec<u32>,
    /// For each function, the CPU time in ns and the number of completions.
    sums: Vec<(u64, u64)>,
    tables: Vec<Table>,
}

impl Means {
    /// Creates it without any completions of `trace`.
    pub fn new(trace: &[Invocation]) -> Self {
        let mut numbers = Numbers::default();
        let level = |level| Table::new([(level * OCTAVE) as u8; BUCKETS]);
        Self {
            function: numbers.of_all(trace),
            sums: vec![(0, 0); numbers.0.len()],
            tables: (0..BUCKETS / OCTAVE + 1).map(level).collect(),
        }
    }
}

impl Rule for Means {
    fn table(&self, id: JobId) -> &Table {
        let (sum, count) = self.sums[self.function[id as usize] as usize];
        let mean = sum.checked_div(count).map_or(0, bucket);
        &self.tables[mean / OCTAVE]
    }

    fn completed(&mut self, id: JobId, service_ns: u64) {
        let (sum, count) = &mut self.sums[self.function[id as usize] as usize];
        *sum += service_ns;
        *count += 1;
    }
}
