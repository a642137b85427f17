//! Comparison of policies by the measures that users feel, relative to
//! processor sharing on the same trace.

use crate::engine::{simulate, SimError};
use crate::job::Outcome;
use crate::policy::{Kind, Settings};
use crate::result::records;
use faas_data::measure::{shortest, Measure};
use faas_data::stats::{self, sorted};
use faas_data::trace::Invocation;
use std::fmt::Write;

/// The columns of a comparison.
pub const COLUMNS: [&str; 10] = [
    "mean",
    "short",
    "long",
    "p99",
    "p99.9",
    "worst p99.9",
    "slowdown",
    "p99 slowdown",
    "mean / SRTF",
    "preemptions",
];

/// The measures of one policy on one trace. Times are turnarounds in
/// microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// Mean of all.
    pub mean: f64,
    /// Mean of the short ones.
    pub short: f64,
    /// Mean of the others.
    pub long: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// Mean slowdown.
    pub slowdown: f64,
    /// The 99th percentile of the slowdown.
    pub slowdown_p99: f64,
    /// Preemptions per invocation.
    pub preemptions: f64,
}

impl Measures {
    /// Measures `outcomes` of `trace` by the definitions of
    /// [`faas_data::measure`]; a measure of an empty set is 0.
    pub fn of(trace: &[Invocation], outcomes: &[Outcome]) -> Self {
        let found = Measure::all(&records(trace, outcomes), trace);
        let is_short = shortest(trace);
        let turnarounds = |keep: &dyn Fn(usize) -> bool| {
            let kept = found.iter().filter(|one| keep(one.id));
            sorted(kept.map(|one| one.turnaround_us as f64).collect())
        };
        let all = turnarounds(&|_| true);
        let slowdowns = sorted(found.iter().map(|one| one.slowdown).collect());
        let preempted: u64 = outcomes.iter().map(|one| one.preempted).sum();
        Self {
            mean: mean(&all),
            short: mean(&turnarounds(&|id| is_short[id])),
            long: mean(&turnarounds(&|id| !is_short[id])),
            p99: at(&all, 990),
            p999: at(&all, 999),
            slowdown: mean(&slowdowns),
            slowdown_p99: at(&slowdowns, 990),
            preemptions: preempted as f64 / trace.len().max(1) as f64,
        }
    }

    /// The columns, relative to processor sharing and to SRTF.
    fn relative(&self, ps: &Self, srtf: &Self) -> [f64; COLUMNS.len()] {
        let p999 = ratio(self.p999, ps.p999);
        [
            ratio(self.mean, ps.mean),
            ratio(self.short, ps.short),
            ratio(self.long, ps.long),
            ratio(self.p99, ps.p99),
            p999,
            p999,
            ratio(self.slowdown, ps.slowdown),
            ratio(self.slowdown_p99, ps.slowdown_p99),
            ratio(self.mean, srtf.mean),
            self.preemptions,
        ]
    }
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or_default()
}

fn at(sorted: &[f64], per_mille: usize) -> f64 {
    stats::percentile(sorted, per_mille).unwrap_or_default()
}

/// 1 if both are 0, as with traces too small to have long invocations.
fn ratio(value: f64, base: f64) -> f64 {
    if base == 0.0 {
        return 1.0;
    }
    value / base
}

/// One row for each of `kinds`: the columns over all `traces`. Ratios are
/// geometric means, `worst p99.9` is the largest one, preemptions are the mean.
///
/// # Errors
/// If a trace cannot be simulated.
pub fn rows(
    traces: &[Vec<Invocation>],
    kinds: &[Kind],
    settings: &Settings,
) -> Result<Vec<[f64; COLUMNS.len()]>, SimError> {
    let measure = |trace: &Vec<Invocation>, kind| {
        let outcomes = simulate(trace, kind, settings)?;
        Ok(Measures::of(trace, &outcomes))
    };
    let mut all = vec![Vec::new(); kinds.len()];
    for trace in traces {
        let (ps, srtf) = (measure(trace, Kind::Ps)?, measure(trace, Kind::Srtf)?);
        for (kind, found) in kinds.iter().zip(&mut all) {
            found.push(measure(trace, *kind)?.relative(&ps, &srtf));
        }
    }
    Ok(all.iter().map(|found| summary(found)).collect())
}

fn summary(found: &[[f64; COLUMNS.len()]]) -> [f64; COLUMNS.len()] {
    std::array::from_fn(|column| {
        let values: Vec<f64> = found.iter().map(|row| row[column]).collect();
        match COLUMNS[column] {
            "worst p99.9" => values.into_iter().fold(0.0, f64::max),
            "preemptions" => mean(&values),
            _ => mean(&values.into_iter().map(f64::ln).collect::<Vec<f64>>()).exp(),
        }
    })
}

/// The rows as a Markdown table, labelled with `label` and the policy's name.
pub fn to_markdown(label: &str, kinds: &[Kind], rows: &[[f64; COLUMNS.len()]]) -> String {
    let mut text = String::new();
    for (kind, row) in kinds.iter().zip(rows) {
        let _ = write!(text, "| {label} | `{}` |", kind.name());
        for value in row {
            let _ = write!(text, " {value:.2} |");
        }
        text.push('\n');
    }
    text
}

/// The header of that table.
pub fn header() -> String {
    let columns = COLUMNS.join(" | ");
    format!(
        "| workload | policy | {columns} |\n|---|---|{}\n",
        "---|".repeat(COLUMNS.len())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::PER_US;
    use faas_data::trace::Phase;

    fn measures(rows: &[(u64, u64)]) -> Measures {
        let trace: Vec<Invocation> = rows
            .iter()
            .map(|row| Invocation::cpu(0, "f", row.0))
            .collect();
        let outcome = |(_, end): &(u64, u64)| Outcome {
            start: 0,
            end: end * PER_US,
            blocked: 0,
            preempted: 2,
        };
        Measures::of(&trace, &rows.iter().map(outcome).collect::<Vec<_>>())
    }

    #[test]
    fn short_are_the_shortest_83_per_cent() {
        let found = measures(&[
            (10, 20),
            (1000, 3000),
            (20, 20),
            (30, 60),
            (40, 40),
            (50, 100),
        ]);
        assert_eq!((found.short, found.long), (48.0, 3000.0));
        assert_eq!((found.mean, found.p99), (540.0, 3000.0));
        assert_eq!((found.slowdown, found.slowdown_p99), (11.0 / 6.0, 3.0));
        assert_eq!(found.preemptions, 2.0);
    }

    #[test]
    fn time_blocked_does_not_count_as_slowdown() {
        let mut one = Invocation::cpu(0, "f", 10);
        one.phases.insert(0, Phase::io(90));
        let outcome = Outcome {
            start: 0,
            end: 150 * PER_US,
            blocked: 1,
            preempted: 0,
        };
        assert_eq!(Measures::of(&[one], &[outcome]).slowdown, 1.5);
    }

    #[test]
    fn processor_sharing_is_the_baseline() {
        let trace = vec![Invocation::cpu(0, "a", 90), Invocation::cpu(0, "b", 10)];
        let kinds = [Kind::Ps, Kind::Srtf];
        let rows = rows(&[trace.clone(), trace], &kinds, &Settings::new(1)).unwrap();
        // PS: 100 and 20, SRTF: 100 and 10.
        assert_eq!(rows[0][..8], [1.0; 8]);
        assert!((rows[1][0] - 110.0 / 120.0).abs() < 1e-12);
        assert!((rows[0][8] - 120.0 / 110.0).abs() < 1e-12);
        let table = to_markdown("two", &kinds, &rows);
        assert!(table.contains("| two | `srtf` | 0.92 |"), "{table}");
    }

    #[test]
    fn an_empty_trace_does_not_divide_by_zero() {
        let found = measures(&[]);
        assert_eq!(found.relative(&found, &found)[..9], [1.0; 9]);
    }
}
