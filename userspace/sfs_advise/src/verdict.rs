//! Whether scx_sfs is worth it, in one or two sentences with the reason.

use faas_data::stats::round;
use serde::Serialize;

use crate::prediction::{Prediction, Role, Turnarounds};
use crate::seen::Seen;

/// A change by less is none: the prediction is not more exact.
const NOTABLE: f64 = 0.05;

/// With a mean slowdown below this hardly anybody waits.
const NOBODY_WAITS: f64 = 1.1;

/// With a larger share of CPU time of invocations with several threads, the prediction is weak.
const MUCH_PARALLEL: f64 = 0.2;

/// If equal shares are further from what was measured, the prediction is weak.
const FAR: f64 = 0.3;

/// What is advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Use it.
    WorthIt,
    /// Some would gain and others lose.
    Mixed,
    /// It would change little.
    NoGain,
    /// It would be worse.
    Worse,
    /// Too little is known.
    None,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// In a word.
    pub advice: Advice,
    /// In one or two sentences.
    pub sentence: String,
    /// Expected change of the mean turnaround under the default, -1 to any: all, short, long.
    pub change: Option<[Option<f64>; 3]>,
    /// Reasons to trust it less, a sentence each.
    pub doubts: Vec<String>,
}

impl Verdict {
    /// The verdict on what was seen and predicted.
    pub fn of(seen: &Seen, predictions: &[Prediction]) -> Self {
        let doubts = doubts(seen, predictions);
        let no = |sentence| Self {
            advice: Advice::None,
            sentence,
            change: None,
            doubts: Vec::new(),
        };
        if let Some(sentence) = seen.obstacle() {
            return no(sentence);
        }
        let with = |role| predictions.iter().find(|one| one.role == role);
        let (Some(base), Some(default), Some(sfs)) =
            (with(Role::Base), with(Role::Default), with(Role::Sfs))
        else {
            return no("No advice: there is no prediction.".into());
        };
        let change = changes(base, default);
        let (advice, mut sentence) = judge(base, change);
        let between = change_of(&default.all, &sfs.all).unwrap_or(0.0);
        if between < -NOTABLE && matches!(advice, Advice::WorthIt | Advice::Mixed | Advice::Worse) {
            sentence += &format!(
                " With --policy sfs the mean over all would be {} than with the default.",
                faster(between)
            );
        }
        Self {
            advice,
            sentence,
            change: Some(change),
            doubts,
        }
    }
}

/// Relative change of the mean turnaround; -0.3: 30 % less.
fn change_of(from: &Turnarounds, to: &Turnarounds) -> Option<f64> {
    let change = to.mean_ms? / from.mean_ms.filter(|ms| *ms > 0.0)? - 1.0;
    Some(round(change, 4))
}

fn changes(from: &Prediction, to: &Prediction) -> [Option<f64>; 3] {
    [
        change_of(&from.all, &to.all),
        change_of(&from.short, &to.short),
        change_of(&from.long, &to.long),
    ]
}

fn faster(change: f64) -> String {
    let per_cent = 100.0 * change.abs();
    match change {
        c if c < 0.0 => format!("{per_cent:.0} % less"),
        _ => format!("{per_cent:.0} % more"),
    }
}

/// What short and long ones would take.
fn words(short: Option<f64>, long: Option<f64>) -> String {
    let time = |change: f64| match change {
        c if c.abs() < NOTABLE => "about the same time".to_owned(),
        c => format!("{} time", faster(c)),
    };
    match (short, long) {
        (Some(short), Some(long)) => format!(
            "short invocations take {} and long ones {}",
            time(short),
            time(long)
        ),
        (one, other) => {
            let change = one.or(other).unwrap_or_default();
            format!("invocations take {}", time(change))
        }
    }
}

fn judge(base: &Prediction, [all, short, long]: [Option<f64>; 3]) -> (Advice, String) {
    let slowdown = base.all.mean_slowdown.unwrap_or(1.0);
    let takes = words(short, long);
    let name = &base.scheduler;
    if slowdown < NOBODY_WAITS {
        return (
            Advice::NoGain,
            format!(
                "Not worth it: the load is too low. Invocations take {slowdown:.2} times as long \
                 as on an idle machine, so there is next to nothing to gain."
            ),
        );
    }
    let all = all.unwrap_or(0.0);
    let short = short.unwrap_or(0.0);
    let long = long.unwrap_or(0.0);
    let is_slower = |change: f64| change > NOTABLE;
    let is_faster = |change: f64| change < -NOTABLE;
    if is_faster(all) && !is_slower(long) && !is_slower(short) {
        return (
            Advice::WorthIt,
            format!("Worth it: under scx_sfs {takes}, compared with {name}."),
        );
    }
    if is_faster(short) || is_faster(all) || is_faster(long) {
        return (
            Advice::Mixed,
            format!(
                "It depends on who matters: under scx_sfs {takes}, compared with {name}; the \
                 mean over all would be {}.",
                if all.abs() < NOTABLE {
                    "about the same".into()
                } else {
                    faster(all)
                }
            ),
        );
    }
    if is_slower(all) || is_slower(short) || is_slower(long) {
        let text = format!("Not worth it: under scx_sfs {takes}, compared with {name}.");
        return (Advice::Worse, text);
    }
    (
        Advice::NoGain,
        format!(
            "Not worth it: although invocations wait, the mean turnarounds of short and long ones \
             would be within {:.0} % of those under {name}.",
            100.0 * NOTABLE
        ),
    )
}

fn doubts(seen: &Seen, predictions: &[Prediction]) -> Vec<String> {
    let mut doubts = Vec::new();
    if seen.parallel_share > MUCH_PARALLEL {
        doubts.push(format!(
            "{:.0} % of the functions' CPU time is of processes with several threads, which the \
             simulated kernel takes for one thread each.",
            100.0 * seen.parallel_share
        ));
    }
    if seen.lost > 0 {
        doubts.push(format!(
            "{} processes are missing in the recording, for lack of room.",
            seen.lost
        ));
    }
    let open = seen.arrived.saturating_sub(seen.ended + seen.parents);
    if open * 10 > seen.arrived {
        doubts.push(format!(
            "{open} of {} invocations were still running at the end, or were killed, and do not \
             count: the longest are missing.",
            seen.arrived
        ));
    }
    let with = |role| predictions.iter().find(|one| one.role == role);
    if let (Some(measured), Some(shares)) = (with(Role::Base), with(Role::Reference)) {
        let far = change_of(&measured.all, &shares.all).filter(|change| change.abs() > FAR);
        doubts.extend(far.map(|change| {
            format!(
                "Equal shares of the CPUs would give a mean turnaround {} than was measured, so \
                 something else holds invocations up here (quotas, pinned tasks, several threads, \
                 or waits for each other), which the simulated kernel does not know.",
                faster(change)
            )
        }));
    }
    for one in predictions {
        if let Some(first) = one.findings.first() {
            let count = one.findings.len();
            doubts.push(format!(
                "The simulated kernel has {count} findings under {}, the first: {first}",
                one.scheduler
            ));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Scheduler;
    use crate::prediction::Source;
    use crate::recording::Recording;
    use faas_data::trace::Invocation;

    fn seen(count: u64) -> Seen {
        let one = |id| Invocation::cpu(id * 1_000, "f", 1_000);
        let trace: Vec<Invocation> = (0..count).map(one).collect();
        Seen::of(&Recording::of_trace(&trace, 2, Scheduler::Eevdf))
    }

    fn row(role: Role, [all, short, long]: [f64; 3], slowdown: f64) -> Prediction {
        let of = |ms| Turnarounds {
            mean_ms: Some(ms),
            p99_ms: None,
            mean_slowdown: Some(slowdown),
        };
        Prediction {
            scheduler: "EEVDF".into(),
            role,
            source: Source::Measured,
            ended: 200,
            all: of(all),
            short: of(short),
            long: of(long),
            findings: Vec::new(),
        }
    }

    fn verdict(slowdown: f64, default: [f64; 3], sfs: f64) -> Verdict {
        let rows = [
            row(Role::Base, [100.0, 50.0, 200.0], slowdown),
            row(Role::Sfs, [sfs, 50.0, 200.0], slowdown),
            row(Role::Default, default, slowdown),
        ];
        Verdict::of(&seen(200), &rows)
    }

    #[test]
    fn the_verdict_follows_from_who_gains_and_who_loses() {
        for (slowdown, default, advice, words) in [
            (
                3.0,
                [60.0, 20.0, 190.0],
                Advice::WorthIt,
                "short invocations take 60 % less time and long ones 5 % less time",
            ),
            (
                3.0,
                [90.0, 20.0, 260.0],
                Advice::Mixed,
                "long ones 30 % more time",
            ),
            (3.0, [99.0, 49.0, 203.0], Advice::NoGain, "within 5 %"),
            (
                3.0,
                [130.0, 60.0, 260.0],
                Advice::Worse,
                "short invocations take 20 % more time",
            ),
            (1.05, [60.0, 20.0, 100.0], Advice::NoGain, "load is too low"),
        ] {
            let found = verdict(slowdown, default, 100.0);
            assert_eq!(found.advice, advice, "{}", found.sentence);
            assert!(found.sentence.contains(words), "{}", found.sentence);
        }
        let change = verdict(3.0, [60.0, 20.0, 190.0], 100.0).change;
        assert_eq!(change, Some([Some(-0.4), Some(-0.6), Some(-0.05)]));
        let other = verdict(3.0, [90.0, 20.0, 260.0], 45.0);
        assert!(
            other.sentence.contains("--policy sfs"),
            "{}",
            other.sentence
        );
    }

    #[test]
    fn too_little_is_no_advice() {
        let found = Verdict::of(&seen(20), &[]);
        assert_eq!((found.advice, found.change), (Advice::None, None));
        assert!(found.sentence.contains("20 invocations"));
    }

    #[test]
    fn doubts_are_named() {
        let mut much = seen(200);
        much.parallel_share = 0.5;
        much.lost = 7;
        much.ended = 150;
        let mut rows = [
            row(Role::Base, [100.0, 50.0, 200.0], 3.0),
            row(Role::Reference, [50.0, 50.0, 200.0], 3.0),
        ];
        rows[1].findings = vec!["broken".into()];
        let found = doubts(&much, &rows);
        for (doubt, word) in
            found
                .iter()
                .zip(["50 %", "7 processes", "50 of 200", "50 % less", "broken"])
        {
            assert!(doubt.contains(word), "{doubt}");
        }
        assert_eq!(found.len(), 5);
        assert!(doubts(&seen(200), &[]).is_empty());
    }
}
