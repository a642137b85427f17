//! The figures of one run.

use crate::split::Splits;
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
    /// Mean turnaround of those up to the gap of the distribution, in milliseconds.
    UpToGap,
    /// Mean turnaround of those beyond the gap, in milliseconds.
    BeyondGap,
    /// Mean turnaround of those that need at most S, in milliseconds.
    Kept,
    /// Mean turnaround of those that need more, in milliseconds.
    Demoted,
    /// CPU time of fixed work / CPU time that it takes alone, of all.
    OverAlone,
}

/// Which invocations count, by their place in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// All.
    All,
    /// Without the first and the last ones, which arrive at an emptier machine or leave
    /// one: this share in per cent is left out at each end (1 to 49).
    Middle(u8),
}

impl Part {
    /// Its name in the report.
    pub fn name(self) -> String {
        match self {
            Self::All => "all".to_string(),
            Self::Middle(percent) => format!("middle {} %", 100 - 2 * u32::from(percent)),
        }
    }

    /// Those of the completed invocations that count; the trace has `count`.
    pub fn of(self, done: &[Measure], count: usize) -> Vec<Measure> {
        let left_out = match self {
            Self::All => 0,
            Self::Middle(percent) => count * usize::from(percent) / 100,
        };
        let counts = |one: &&Measure| left_out <= one.id && one.id < count - left_out;
        done.iter().filter(counts).copied().collect()
    }
}

impl Figure {
    /// All, in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::Turnaround,
        Self::Slowdown,
        Self::TurnaroundP99,
        Self::SlowdownP99,
        Self::Short,
        Self::Long,
        Self::UpToGap,
        Self::BeyondGap,
        Self::Kept,
        Self::Demoted,
        Self::OverAlone,
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
            Self::UpToGap => "short by gap",
            Self::BeyondGap => "long by gap",
            Self::Kept => "not demoted",
            Self::Demoted => "demoted",
            Self::OverAlone => "CPU / CPU alone",
        }
    }

    /// Of the completed invocations of a run. `None` if none counts, the trace has no
    /// such split, or only the summary has the figure.
    pub fn of(self, done: &[Measure], splits: &Splits) -> Option<f64> {
        match self {
            Self::Turnaround => mean_turnaround(done, |_| true),
            Self::Slowdown => mean(&slowdowns(done)),
            Self::TurnaroundP99 => p99(done.iter().map(Measure::turnaround_ms).collect()),
            Self::SlowdownP99 => p99(slowdowns(done)),
            Self::Short => of_half(done, Some(&splits.share), true),
            Self::Long => of_half(done, Some(&splits.share), false),
            Self::UpToGap => of_half(done, splits.gap.as_ref(), true),
            Self::BeyondGap => of_half(done, splits.gap.as_ref(), false),
            Self::Kept => of_half(done, splits.kept.as_ref(), true),
            Self::Demoted => of_half(done, splits.kept.as_ref(), false),
            Self::OverAlone => None,
        }
    }
}

/// The mean over the invocations whose number `counts`.
fn mean_turnaround(done: &[Measure], counts: impl Fn(usize) -> bool) -> Option<f64> {
    let those = done.iter().filter(|one| counts(one.id));
    mean(&those.map(Measure::turnaround_ms).collect::<Vec<_>>())
}

/// The mean turnaround of the short ones, or of the long ones.
fn of_half(done: &[Measure], short: Option<&Vec<bool>>, which: bool) -> Option<f64> {
    let short = short?;
    mean_turnaround(done, |id| short[id] == which)
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

    fn splits(short: Vec<bool>) -> Splits {
        Splits {
            gap: Some(short.iter().map(|short| !short).collect()),
            share: short,
            kept: None,
        }
    }

    #[test]
    fn figures_by_hand() {
        let mut short = vec![true; 200];
        short[199] = false;
        let splits = splits(short);
        let found = Figure::ALL.map(|figure| figure.of(&done(200), &splits));
        let want = [100.5, 50.25, 198.0, 99.0, 100.0, 200.0, 200.0, 100.0];
        assert_eq!(found[..8], want.map(Some));
        assert_eq!(found[8..], [None, None, None]);
        let none = |figure: &Figure| figure.of(&[], &splits).is_none();
        assert!(Figure::ALL.iter().all(none));
        assert_eq!(Figure::Long.of(&done(199), &splits), None);
    }

    #[test]
    fn both_ends_are_left_out_by_arrival() {
        let ids = |part: Part, count| {
            let kept = part.of(&done(count), count);
            (kept[0].id, kept[kept.len() - 1].id, kept.len())
        };
        assert_eq!(ids(Part::All, 20), (0, 19, 20));
        assert_eq!(ids(Part::Middle(10), 20), (2, 17, 16));
        // Rounded down: nobody is left out of nine.
        assert_eq!(ids(Part::Middle(10), 9), (0, 8, 9));
        assert_eq!(ids(Part::Middle(49), 100), (49, 50, 2));
        // What has failed is left out by its place as well.
        assert_eq!(Part::Middle(10).of(&done(20)[3..], 20).len(), 15);
        assert_eq!(Part::Middle(10).name(), "middle 80 %");
    }
}
