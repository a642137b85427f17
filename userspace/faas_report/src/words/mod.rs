//! The comparison as text.

mod reading;

use super::{label, Comparison};
use faas_data::stats::Stats;
use faas_data::summary::Status;
use faas_data::summary::Summary;
use faas_data::summary::LATE;

pub use reading::reading;

/// A status as text.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::NotLoaded => "did not load, nothing was measured",
        Status::Ejected => "gone during the replay, the rest ran under EEVDF",
        Status::Reloaded => "loaded again during the replay",
        Status::BadExit => "measured, but did not exit well",
        Status::Lost => "lost with its machine, nothing was measured",
    }
}

/// Warnings about the numbers: rows that differ, troubled schedulers, late arrivals.
pub fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut warnings: Vec<String> = comparison.mismatch().into_iter().collect();
    for row in &comparison.rows {
        warnings.extend(trouble(row));
        warnings.extend(late(row));
    }
    warnings
}

/// A sentence for each row: how it compares with the baseline.
pub fn comparisons(comparison: &Comparison) -> Vec<String> {
    let rows = comparison.rows.iter().enumerate();
    rows.filter(|(index, _)| comparison.baseline != Some(*index))
        .filter_map(|(_, row)| against(comparison.base(), row))
        .collect()
}

/// How `row` compares with `base`.
fn against(base: Option<&Summary>, row: &Summary) -> Option<String> {
    let base = base?;
    let mut parts = Vec::new();
    parts.extend(pace(
        "short functions",
        base.short.turnaround_ms,
        row.short.turnaround_ms,
    ));
    parts.extend(pace(
        "long ones",
        base.long.turnaround_ms,
        row.long.turnaround_ms,
    ));
    let live = !base.is_simulated() && !row.is_simulated();
    if let (true, Some(before), Some(now)) = (live, base.switches, row.switches) {
        parts.push(switches(before.involuntary, now.involuntary));
    }
    let (name, other) = (label(row), label(base));
    (!parts.is_empty()).then(|| format!("{name} against {other}: {}.", parts.join("; ")))
}

/// The problems of `row`, if it has any.
fn trouble(row: &Summary) -> Option<String> {
    let name = label(row);
    let mut parts = Vec::new();
    if row.scheduler.status != Status::Ok {
        let mut what = status(row.scheduler.status).to_string();
        if !row.scheduler.detail.is_empty() {
            what = format!("{what} ({})", row.scheduler.detail);
        }
        parts.push(what);
    }
    let unmeasured = [Status::NotLoaded, Status::Lost].contains(&row.scheduler.status);
    if row.failed > 0 && !unmeasured {
        let all = row.trace.invocations;
        parts.push(format!("{} of {all} invocations failed", row.failed));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}.", parts.join("; ")))
}

/// The warning that arrivals of `row` were late, if they were.
fn late(row: &Summary) -> Option<String> {
    let lag = row.arrival_lag_ms.filter(|_| row.is_late())?;
    Some(format!(
        "{}: arrivals were late by {:.2} ms on average (at most {:.1} ms), more than {} % of the mean \
         turnaround of its short invocations: part of what was measured is the benchmark itself.",
        label(row),
        lag.mean,
        lag.max,
        LATE * 100.0
    ))
}

/// Mean turnaround before and now. Large differences are given as a factor,
/// small ones in per cent.
fn pace(who: &str, before: Option<Stats>, now: Option<Stats>) -> Option<String> {
    let (before, now) = (before?.mean, now?.mean);
    if before <= 0.0 || now <= 0.0 {
        return None;
    }
    let ratio = now / before;
    let per_cent = 100.0 * (ratio - 1.0).abs();
    Some(match ratio {
        r if r <= 1.0 / 1.5 => format!("{who} finish {:.1}x faster on average", 1.0 / r),
        r if r >= 2.0 => format!("{who} take {r:.1}x as long on average"),
        _ if per_cent < 0.5 => format!("{who} take as long on average"),
        r if r < 1.0 => format!("{who} take {per_cent:.0} % less time on average"),
        _ => format!("{who} take {per_cent:.0} % longer on average"),
    })
}

fn switches(before: f64, now: f64) -> String {
    let what = "involuntary switches";
    if now == 0.0 || before == 0.0 {
        return format!("{now:.1} {what} for one invocation instead of {before:.1}");
    }
    let ratio = now / before;
    let per_cent = 100.0 * (ratio - 1.0).abs();
    match ratio {
        r if r <= 1.0 / 1.5 => format!("{:.1}x fewer {what}", 1.0 / r),
        r if r >= 2.0 => format!("{r:.1}x as many {what}"),
        _ if per_cent < 0.5 => format!("as many {what}"),
        r if r < 1.0 => format!("{per_cent:.0} % fewer {what}"),
        _ => format!("{per_cent:.0} % more {what}"),
    }
}

/// `text` in lines of at most `most` characters, where its words allow. A sign
/// stays with its number.
pub fn wrap(text: &str, most: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if word.starts_with('%') => *last = format!("{last} {word}"),
            _ => words.push(word.to_string()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(mean: f64) -> Option<Stats> {
        Stats::of_ratios(vec![mean])
    }

    #[test]
    fn pace_is_worded_for_better_and_for_worse() {
        let say = |before, now| pace("they", mean(before), mean(now)).unwrap();
        assert_eq!(say(104.0, 32.0), "they finish 3.2x faster on average");
        assert_eq!(say(100.0, 80.0), "they take 20 % less time on average");
        assert_eq!(say(1000.0, 1001.0), "they take as long on average");
        assert_eq!(say(1505.0, 1804.0), "they take 20 % longer on average");
        assert_eq!(say(104.0, 416.0), "they take 4.0x as long on average");
        assert_eq!(pace("they", mean(1.0), None), None);
    }

    #[test]
    fn switches_are_worded_for_better_and_for_worse() {
        assert_eq!(switches(36.6, 11.9), "3.1x fewer involuntary switches");
        assert_eq!(switches(10.0, 9.0), "10 % fewer involuntary switches");
        assert_eq!(switches(10.0, 10.01), "as many involuntary switches");
        assert_eq!(switches(10.0, 12.0), "20 % more involuntary switches");
        assert_eq!(switches(10.0, 40.0), "4.0x as many involuntary switches");
        assert_eq!(
            switches(36.6, 0.0),
            "0.0 involuntary switches for one invocation instead of 36.6"
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two  three", 7), "one two\nthree");
        assert_eq!(wrap("unbreakable x", 5), "unbreakable\nx");
        assert_eq!(wrap("some 9 % x", 6), "some\n9 % x");
        assert_eq!(wrap("", 5), "");
    }
}
