//! The figures that are drawn over time.

use std::collections::VecDeque;

use crate::sample::Sample;
use crate::words::{count, percent, time_us, UNKNOWN};

/// Number of values that are kept: more than a screen is wide.
const LENGTH: usize = 600;

/// A figure that is drawn over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Share of the CPUs' time that is used.
    Busy,
    /// Invocations begun per second.
    Arrivals,
    /// Threads that run or wait.
    Runnable,
    /// Invocations ended per second.
    Completions,
    /// Share of the time in which a task waits for a CPU.
    Pressure,
    /// Invocations demoted per second.
    Demotions,
    /// Tasks that wait in FILTER or in the order of ranks.
    Waiting,
    /// Fair-only mode.
    Mode,
    /// Function tasks that wait in FAIR.
    Fair,
    /// Tasks outside of functions that wait.
    Outside,
    /// Mean wait of work that starts from FILTER or by rank.
    Delay,
    /// CPU time wasted per second.
    Waste,
}

/// All of them, two in each line of the screen: on the left the state of the machine and its
/// queues, on the right what happens.
pub const FIGURES: [Figure; 12] = [
    Figure::Busy,
    Figure::Arrivals,
    Figure::Runnable,
    Figure::Completions,
    Figure::Pressure,
    Figure::Demotions,
    Figure::Waiting,
    Figure::Mode,
    Figure::Fair,
    Figure::Outside,
    Figure::Delay,
    Figure::Waste,
];

impl Figure {
    /// Returns its name on the screen, at most 8 characters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Arrivals => "arrivals",
            Self::Runnable => "runnable",
            Self::Completions => "done",
            Self::Pressure => "pressure",
            Self::Demotions => "demoted",
            Self::Waiting => "waiting",
            Self::Mode => "mode",
            Self::Fair => "in FAIR",
            Self::Outside => "outside",
            Self::Delay => "delay",
            Self::Waste => "wasted",
        }
    }

    /// Returns its value in a sample, None if it is not known. Times are in µs.
    pub fn value(self, sample: &Sample) -> Option<f64> {
        let scheduler = sample.scheduler.as_ref();
        let metrics = scheduler.map(|one| &one.metrics);
        let rate = |count: u64| scheduler.map(|one| one.rate(count));
        match self {
            Self::Busy => sample.machine.busy_share,
            Self::Runnable => sample.machine.runnable.map(|count| count as f64),
            Self::Pressure => sample.machine.pressure_share,
            Self::Arrivals => rate(metrics?.arrivals),
            Self::Completions => rate(metrics?.completions),
            Self::Demotions => rate(metrics?.demotions),
            Self::Waiting => metrics.map(|of| (of.queued_filter + of.queued_ranked) as f64),
            Self::Mode => metrics.map(|of| of.mode as f64),
            Self::Fair => metrics.map(|of| of.queued_fair as f64),
            Self::Outside => metrics.map(|of| of.queued_outside as f64),
            Self::Delay => metrics.map(|of| of.queue_delay_mean_us),
            Self::Waste => sample.waste.as_ref().map(|waste| waste.rate_ms() * 1000.0),
        }
    }

    /// Returns a value as words, at most 9 characters.
    pub fn text(self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return UNKNOWN.to_owned();
        };
        match self {
            Self::Busy | Self::Pressure => percent(value),
            Self::Arrivals | Self::Completions | Self::Demotions => format!("{}/s", count(value)),
            Self::Runnable | Self::Waiting | Self::Fair | Self::Outside => count(value),
            Self::Mode => mode(value > 0.0).to_owned(),
            Self::Delay => time_us(value),
            Self::Waste => format!("{}/s", time_us(value).replace(' ', "")),
        }
    }

    /// Returns the value that fills the height of its graph, None: the largest one shown.
    pub fn full(self) -> Option<f64> {
        match self {
            Self::Busy | Self::Pressure | Self::Mode => Some(1.0),
            _ => None,
        }
    }
}

/// Returns the name of a mode.
pub fn mode(is_fair_only: bool) -> &'static str {
    if is_fair_only {
        "fair-only"
    } else {
        "FILTER"
    }
}

/// The values of all figures in the last samples.
#[derive(Debug, Default)]
pub struct History(VecDeque<[Option<f64>; FIGURES.len()]>);

impl History {
    /// Adds those of a sample.
    pub fn add(&mut self, sample: &Sample) {
        if self.0.len() == LENGTH {
            self.0.pop_back();
        }
        self.0.push_front(FIGURES.map(|one| one.value(sample)));
    }

    /// Returns the values of one figure, the latest first; 0 where it was not known.
    pub fn of(&self, figure: Figure) -> impl Iterator<Item = f64> + '_ {
        let at = FIGURES.iter().position(|one| *one == figure);
        let values = self.0.iter();
        values.map(move |all| at.and_then(|at| all[at]).unwrap_or(0.0))
    }

    /// Returns the latest value of one figure.
    pub fn latest(&self, figure: Figure) -> Option<f64> {
        let at = FIGURES.iter().position(|one| *one == figure)?;
        self.0.front()?[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Scheduler;

    fn sample(arrivals: u64) -> Sample {
        let mut scheduler = Scheduler {
            interval_s: 2.0,
            ..Scheduler::default()
        };
        scheduler.metrics.arrivals = arrivals;
        scheduler.metrics.queued_ranked = 3;
        scheduler.metrics.queued_filter = 4;
        scheduler.metrics.mode = 1;
        scheduler.metrics.queue_delay_mean_us = 1500.0;
        Sample {
            scheduler: Some(scheduler),
            ..Sample::default()
        }
    }

    #[test]
    fn values_are_taken_from_samples() {
        let mut history = History::default();
        assert_eq!(history.latest(Figure::Arrivals), None);
        history.add(&sample(10));
        history.add(&sample(50));
        let said = |figure: Figure| figure.text(history.latest(figure));
        assert_eq!(said(Figure::Arrivals), "25/s");
        assert_eq!(said(Figure::Waiting), "7");
        assert_eq!(said(Figure::Mode), "fair-only");
        assert_eq!(said(Figure::Delay), "1.5 ms");
        assert_eq!(
            (said(Figure::Waste), said(Figure::Busy)),
            ("-".into(), "-".into())
        );
        let arrivals: Vec<f64> = history.of(Figure::Arrivals).collect();
        assert_eq!(arrivals, [25.0, 5.0]);
        history.add(&Sample::default());
        assert_eq!(history.of(Figure::Arrivals).next(), Some(0.0));
        assert_eq!(history.latest(Figure::Arrivals), None);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = History::default();
        for at in 0..LENGTH + 5 {
            history.add(&sample(at as u64));
        }
        assert_eq!(history.of(Figure::Arrivals).count(), LENGTH);
        assert_eq!(history.latest(Figure::Arrivals), Some(302.0));
    }

    #[test]
    fn names_and_values_keep_to_their_columns() {
        for figure in FIGURES {
            assert!(figure.name().len() <= 8, "{figure:?}");
            for value in [0.0_f64, 0.5, 1.0, 999.0, 99_999.0, 5e8] {
                let is_share = figure.full().is_some();
                let text = figure.text(Some(if is_share { value.min(1.0) } else { value }));
                assert!(text.len() <= 9, "{figure:?}: {text}");
            }
        }
    }
}
