//! What is shown: the latest sample, its history, and what the user has chosen.

use std::collections::HashMap;
use std::time::Duration;

use ratatui::layout::{Position, Rect};

use crate::history::History;
use crate::rows::Counter;
use crate::sample::Sample;
use crate::table::Shown;

/// Shortest and longest time between two samples.
pub const INTERVALS: [Duration; 9] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// A view, on the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Graphs, and the heads of the tables.
    Overview,
    /// All functions.
    Functions,
    /// All sandboxes.
    Sandboxes,
    /// All counters of the scheduler.
    Counters,
}

impl View {
    /// All views, in the order of their tabs.
    pub const ALL: [Self; 4] = [
        Self::Overview,
        Self::Functions,
        Self::Sandboxes,
        Self::Counters,
    ];

    /// Returns its name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Functions => "Functions",
            Self::Sandboxes => "Sandboxes",
            Self::Counters => "Counters",
        }
    }

    /// Returns the view after it, or before it.
    pub fn neighbour(self, back: bool) -> Self {
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        let step = if back { Self::ALL.len() - 1 } else { 1 };
        Self::ALL[(at + step) % Self::ALL.len()]
    }

    /// Returns the table that keys move in this view.
    pub fn table(self) -> Table {
        match self {
            Self::Overview | Self::Functions => Table::Functions,
            Self::Sandboxes => Table::Sandboxes,
            Self::Counters => Table::Counters,
        }
    }
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Functions.
    Functions,
    /// Sandboxes.
    Sandboxes,
    /// Counters.
    Counters,
}

/// What is at a place of the screen, for the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// The tab of a view.
    Tab(View),
    /// The title of a column of a table.
    Title(Table, usize),
    /// A table.
    Table(Table),
}

/// Everything that is shown.
#[derive(Debug)]
pub struct State {
    /// The latest sample.
    pub sample: Option<Sample>,
    /// The figures of the last samples.
    pub history: History,
    /// Growth of the counters since load.
    totals: HashMap<&'static str, u64>,
    /// The view.
    pub view: View,
    /// How functions are shown.
    pub functions: Shown,
    /// How sandboxes are shown.
    pub sandboxes: Shown,
    /// How counters are shown.
    pub counters: Shown,
    /// Time between two samples.
    pub interval: Duration,
    /// Whether no samples are taken.
    pub is_paused: bool,
    /// Whether the keys are explained.
    pub helps: bool,
    /// Whether wasted CPU time is watched.
    pub watches_waste: bool,
    /// Whether the mouse is used; otherwise the terminal selects text with it.
    pub uses_mouse: bool,
    /// A sentence for the last line.
    pub note: Option<String>,
    /// Where things are on the screen; the first of those at one place counts.
    pub spots: Vec<(Rect, Spot)>,
}

impl State {
    /// Starts without a sample.
    pub fn new(interval: Duration) -> Self {
        Self {
            sample: None,
            history: History::default(),
            totals: HashMap::new(),
            view: View::Overview,
            functions: Shown::by(1),
            sandboxes: Shown::by(1),
            counters: Shown::by(2),
            interval,
            is_paused: false,
            helps: false,
            watches_waste: false,
            uses_mouse: true,
            note: None,
            spots: Vec::new(),
        }
    }

    /// Takes a new sample.
    pub fn take(&mut self, sample: Sample) {
        self.history.add(&sample);
        if let Some(scheduler) = &sample.scheduler {
            let before = self.sample.as_ref().and_then(|one| one.scheduler.as_ref());
            let is_same = before.is_some_and(|before| {
                before.pid == scheduler.pid && before.metrics.uptime_s <= scheduler.metrics.uptime_s
            });
            // The first answer of a connection has the growth since load.
            let is_whole = scheduler.interval_s >= scheduler.metrics.uptime_s as f64;
            if !is_same || is_whole {
                self.totals.clear();
            }
            for (name, _, count) in scheduler.metrics.counters() {
                *self.totals.entry(name).or_default() += count;
            }
        }
        self.sample = Some(sample);
    }

    /// Returns the counters that have counted since load.
    pub fn counter_rows(&self) -> Vec<Counter> {
        let scheduler = self.sample.as_ref().and_then(|one| one.scheduler.as_ref());
        let Some(scheduler) = scheduler else {
            return Vec::new();
        };
        let row = |(name, meaning, count): (&'static str, &str, u64)| {
            let total = self.totals.get(name).copied().unwrap_or(count);
            (total > 0).then(|| Counter {
                name,
                rate: scheduler.rate(count),
                total,
                meaning: meaning.to_owned(),
            })
        };
        scheduler
            .metrics
            .counters()
            .into_iter()
            .filter_map(row)
            .collect()
    }

    /// Returns the number of rows of a table.
    pub fn length(&self, table: Table) -> usize {
        let sample = self.sample.as_ref();
        match table {
            Table::Functions => {
                let scheduler = sample.and_then(|one| one.scheduler.as_ref());
                scheduler.map_or(0, |one| one.functions.len())
            }
            Table::Sandboxes => {
                let sandboxes = sample.and_then(|one| one.sandboxes.as_ref());
                sandboxes.map_or(0, |all| all.list.len())
            }
            Table::Counters => self.counter_rows().len(),
        }
    }

    /// Returns how a table is shown.
    pub fn shown(&mut self, table: Table) -> &mut Shown {
        match table {
            Table::Functions => &mut self.functions,
            Table::Sandboxes => &mut self.sandboxes,
            Table::Counters => &mut self.counters,
        }
    }

    /// Returns what is at a place.
    pub fn spot(&self, column: u16, row: u16) -> Option<Spot> {
        let place = Position::new(column, row);
        let found = self.spots.iter().find(|(area, _)| area.contains(place));
        found.map(|(_, spot)| *spot)
    }

    /// Returns the next longer interval, or the next shorter one.
    pub fn next_interval(&self, longer: bool) -> Duration {
        let next = if longer {
            INTERVALS.iter().find(|one| **one > self.interval)
        } else {
            INTERVALS.iter().rev().find(|one| **one < self.interval)
        };
        next.copied().unwrap_or(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Scheduler;

    fn sample(pid: u64, uptime_s: u64, interval_s: f64, arrivals: u64) -> Sample {
        let mut scheduler = Scheduler {
            pid: Some(pid),
            interval_s,
            ..Scheduler::default()
        };
        scheduler.metrics.uptime_s = uptime_s;
        scheduler.metrics.arrivals = arrivals;
        Sample {
            scheduler: Some(scheduler),
            ..Sample::default()
        }
    }

    fn arrivals(state: &State) -> (u64, f64) {
        let rows = state.counter_rows();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0].meaning, "Invocations begun");
        (rows[0].total, rows[0].rate)
    }

    #[test]
    fn counters_are_summed_up_as_long_as_one_scheduler_runs() {
        let mut state = State::new(INTERVALS[3]);
        assert!(state.counter_rows().is_empty());
        state.take(sample(1, 100, 100.0, 1000));
        state.take(sample(1, 102, 2.0, 10));
        assert_eq!(arrivals(&state), (1010, 5.0));
        // Connected anew: the growth since load.
        state.take(sample(1, 104, 104.0, 1020));
        assert_eq!(arrivals(&state).0, 1020);
        state.take(Sample::default());
        assert!(state.counter_rows().is_empty());
        state.take(sample(2, 3, 3.0, 6));
        assert_eq!(arrivals(&state), (6, 2.0));
    }

    #[test]
    fn views_and_intervals_have_neighbours() {
        assert_eq!(View::Overview.neighbour(true), View::Counters);
        assert_eq!(View::Counters.neighbour(false), View::Overview);
        let mut state = State::new(Duration::from_millis(1500));
        assert_eq!(state.next_interval(true), Duration::from_secs(2));
        assert_eq!(state.next_interval(false), Duration::from_secs(1));
        state.interval = Duration::from_secs(3600);
        assert_eq!(state.next_interval(true), state.interval);
    }

    #[test]
    fn the_first_spot_at_a_place_counts() {
        let mut state = State::new(INTERVALS[3]);
        state.spots = vec![
            (Rect::new(0, 1, 5, 1), Spot::Title(Table::Functions, 0)),
            (Rect::new(0, 1, 20, 9), Spot::Table(Table::Functions)),
        ];
        assert_eq!(state.spot(4, 1), Some(Spot::Title(Table::Functions, 0)));
        assert_eq!(state.spot(5, 1), Some(Spot::Table(Table::Functions)));
        assert_eq!(state.spot(0, 0), None);
    }
}
