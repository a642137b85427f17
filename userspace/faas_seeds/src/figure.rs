//! The figures of one run.

use faas_data::measure::Measure;
use faas_data::stats::{mean, nearest_rank, sorted};

/// A figure that is compared. Smaller is better in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Mean turnaround of all, in milliseconds.
    Turnaround,
    /// Mean slowdown of all.
    Slowdown,
    /// The 99th percentile of turnaround, in milliseconds.
    TurnaroundP99,
    /// The 99th percentile of slowdown.
    SlowdownP99,
    /// Mean turnaround of the shortest 83 %, in milliseconds.
    Short,
    /// Mean turnaround of the other 17 %, in milliseconds.
    Long,
}

impl Figure {
    /// All, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Turnaround,
        Self::Slowdown,
        Self::TurnaroundP99,
        Self::SlowdownP99,
        Self::Short,
        Self::Long,
    ];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turnaround => "mean turnaround",
            Self::Slowdown => "mean slowdown",
            Self::TurnaroundP99 => "p99 turnaround",
            Self::SlowdownP99 => "p99 slowdown",
            Self::Short => "short, mean",
            Self::Long => "long, mean",
        }
    }

    /// Of the completed invocations of a run. `None` if none counts. `short` says of each
    /// invocation of the trace whether it is short.
    pub fn of(self, done: &[Measure], short: &[bool]) -> Option<f64> {
        match self {
            Self::Turnaround => mean_turnaround(done, |_| true),
            Self::Slowdown => mean(&slowdowns(done)),
            Self::TurnaroundP99 => p99(done.iter().map(Measure::turnaround_ms).collect()),
            Self::SlowdownP99 => p99(slowdowns(done)),
            Self::Short => mean_turnaround(done, |id| short[id]),
            Self::Long => mean_turnaround(done, |id| !short[id]),
        }
    }
}

/// The mean over the invocations whose number `counts`.
fn mean_turnaround(done: &[Measure], counts: impl Fn(usize) -> bool) -> Option<f64> {
    let those = done.iter().filter(|one| counts(one.id));
    mean(&those.map(Measure::turnaround_ms).collect::<Vec<_>>())
}

fn slowdowns(done: &[Measure]) -> Vec<f64> {
    done.iter().map(|one| one.slowdown).collect()
}

fn p99(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| nearest_rank(&sorted(values), 99, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turnarounds of 1, 2, ... milliseconds, with slowdowns of half of that.
    fn done(count: usize) -> Vec<Measure> {
        let measure = |id: usize| Measure {
            id,
            turnaround_us: 1000 * (id as u64 + 1),
            queue_delay_us: 0,
            slowdown: (id + 1) as f64 / 2.0,
        };
        (0..count).map(measure).collect()
    }

    #[test]
    fn figures_by_hand() {
        let mut short = vec![true; 200];
        short[199] = false;
        let found = Figure::ALL.map(|figure| figure.of(&done(200), &short));
        let want = [100.5, 50.25, 198.0, 99.0, 100.0, 200.0];
        assert_eq!(found, want.map(Some));
        assert!(Figure::ALL
            .iter()
            .all(|figure| figure.of(&[], &short).is_none()));
        assert_eq!(Figure::Long.of(&done(199), &short), None);
    }
}
