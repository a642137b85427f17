//! The result in one paragraph.

use super::pace;
use crate::{label, Comparison};
use faas_data::summary::Summary;

/// The clairvoyant bound, where it was simulated.
const BOUND: &str = "srtf";

/// A measure in which one scheduler is the best.
struct Contest {
    /// The start of the sentence, up to the winner's name.
    what: &'static str,
    /// The text after the winner's number.
    unit: &'static str,
    value: fn(&Summary) -> Option<f64>,
    more_is_better: bool,
}

const CONTESTS: [Contest; 5] = [
    Contest {
        what: "Short functions finish soonest under",
        unit: " ms on average",
        value: |row| Some(row.short.turnaround_ms?.mean),
        more_is_better: false,
    },
    Contest {
        what: "Long ones finish soonest under",
        unit: " ms on average",
        value: |row| Some(row.long.turnaround_ms?.mean),
        more_is_better: false,
    },
    Contest {
        what: "The 99th percentile of slowdown is lowest under",
        unit: "",
        value: |row| Some(row.slowdown?.p99),
        more_is_better: false,
    },
    Contest {
        what: "Most invocations run almost undisturbed (RTE >= 0.95) under",
        unit: " %",
        value: |row| Some(100.0 * row.rte?.at_least_095),
        more_is_better: true,
    },
    Contest {
        what: "Invocations are preempted least often under",
        unit: " times",
        value: |row| Some(row.switches?.involuntary),
        more_is_better: false,
    },
];

/// The result in numbers, as sentences of one paragraph: the best scheduler by each
/// measure, its lead, its cost, and its distance from the bound.
pub fn reading(comparison: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = CONTESTS
        .iter()
        .filter_map(|contest| won(comparison, contest))
        .collect();
    sentences.extend(price(comparison));
    sentences.extend(gain(comparison));
    sentences
}

/// Rows with results whose schedulers ran to the end.
fn live(comparison: &Comparison) -> Vec<(usize, &Summary)> {
    let rows = comparison.rows.iter().enumerate();
    rows.filter(|(index, _)| comparison.is_live(*index))
        .collect()
}

/// The best row by a value.
fn best<'a>(rows: &[(usize, &'a Summary)], contest: &Contest) -> Option<(usize, &'a Summary, f64)> {
    let values = rows.iter().filter_map(|(index, row)| {
        let value = (contest.value)(row)?;
        Some((*index, *row, value))
    });
    values.reduce(|best, one| {
        let better = if contest.more_is_better {
            one.2 > best.2
        } else {
            one.2 < best.2
        };
        if better {
            one
        } else {
            best
        }
    })
}

/// The winner, and its lead over the baseline or the second.
fn won(comparison: &Comparison, contest: &Contest) -> Option<String> {
    let rows = live(comparison);
    let (index, winner, value) = best(&rows, contest)?;
    let others: Vec<(usize, &Summary)> = rows
        .into_iter()
        .filter(|(other, _)| *other != index)
        .collect();
    let is_base = comparison.baseline == Some(index);
    let other = if is_base {
        best(&others, contest)
    } else {
        comparison
            .base()
            .and_then(|base| Some((0, base, (contest.value)(base)?)))
            .or_else(|| best(&others, contest))
    };
    let (_, other, theirs) = other?;
    let (own, theirs) = (figure(value), figure(theirs));
    let beside = if own == theirs {
        format!("as under {}", label(other))
    } else {
        format!("{}: {theirs}{}", label(other), short_unit(contest.unit))
    };
    let (what, name, unit) = (contest.what, label(winner), contest.unit);
    Some(format!("{what} {name}, {own}{unit} ({beside})."))
}

/// The unit of a repeated number.
fn short_unit(unit: &str) -> &str {
    unit.strip_suffix(" on average").unwrap_or(unit)
}

/// The effect on long functions of the scheduler that is best for short ones.
fn price(comparison: &Comparison) -> Option<String> {
    let base = comparison.base()?;
    let (index, winner, _) = best(&live(comparison), &CONTESTS[0])?;
    if comparison.baseline == Some(index) {
        return None;
    }
    let short = pace(
        "short ones",
        base.short.turnaround_ms,
        winner.short.turnaround_ms,
    )?;
    let long = pace(
        "long ones",
        base.long.turnaround_ms,
        winner.long.turnaround_ms,
    )?;
    let (name, other) = (label(winner), label(base));
    Some(format!(
        "Against {other}, under {name} {short}, and {long}."
    ))
}

/// The share of the possible gain for short functions that the best scheduler
/// reaches.
fn gain(comparison: &Comparison) -> Option<String> {
    let short = CONTESTS[0].value;
    let bound = comparison
        .rows
        .iter()
        .find(|row| row.is_simulated() && row.scheduler.name == BOUND)?;
    let base = comparison.base()?;
    let (index, winner, value) = best(&live(comparison), &CONTESTS[0])?;
    let (least, most) = (short(bound)?, short(base)?);
    if most <= least {
        return None;
    }
    let gained = if comparison.baseline == Some(index) {
        format!("no scheduler here gains anything over {}", label(base))
    } else {
        let share = 100.0 * (most - value) / (most - least);
        let (base, winner) = (label(base), label(winner));
        format!("of what there is to gain over {base}, {winner} gains {share:.0} %")
    };
    Some(format!(
        "With all service times known in advance ({}) the short ones would take {} ms: {gained}.",
        label(bound).replace(" (simulated)", ", simulated"),
        figure(least),
    ))
}

/// A number for a sentence.
fn figure(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 0.95 => format!("{value:.1}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.2}"),
    }
}
