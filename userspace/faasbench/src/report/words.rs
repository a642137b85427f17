//! What the numbers say, in plain words.

use super::{is_simulated, label, Comparison};
use crate::scheduler::Status;
use crate::summary::stats::Stats;
use crate::summary::Summary;

/// A status in a few words.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::NotLoaded => "did not load, nothing was measured",
        Status::Ejected => "gone during the replay, the rest ran under EEVDF",
        Status::Reloaded => "loaded anew during the replay",
        Status::BadExit => "measured, but did not exit well",
        Status::Lost => "lost with its machine, nothing was measured",
    }
}

/// All that there is to say, a sentence or two for each row.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = comparison.mismatch().into_iter().collect();
    for (index, row) in comparison.rows.iter().enumerate() {
        if comparison.baseline != Some(index) {
            sentences.extend(against(comparison.base(), row));
        }
        sentences.extend(trouble(row));
    }
    sentences
}

/// How `row` does against `base`.
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
    let live = !is_simulated(base) && !is_simulated(row);
    if let (true, Some(before), Some(now)) = (live, base.switches, row.switches) {
        parts.push(switches(before.involuntary, now.involuntary));
    }
    let (name, other) = (label(row), label(base));
    (!parts.is_empty()).then(|| format!("{name} against {other}: {}.", parts.join("; ")))
}

/// What went wrong with `row`, if something did.
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

/// Mean turnaround before and now. Differences of a factor are given as a
/// factor, smaller ones in per cent.
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
}
