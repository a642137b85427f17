//! The report in sentences.

use super::instead::Instead;
use super::{in_words, Report, Slow};
use crate::kind::{Kind, Turn};

/// Parts below this share of the time are summed up.
const SMALL: f64 = 0.005;

/// Runners of this many names are listed.
const RUNNERS: usize = 5;

/// Returns a time in ms with three digits or so, and its unit.
fn time(ms: f64) -> String {
    match ms {
        10_000.0.. => format!("{:.1} s", ms / 1e3),
        10.0.. => format!("{ms:.0} ms"),
        1.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn part(slow: &Slow, ms: f64) -> String {
    format!("{} ({})", time(ms), percent(ms / slow.took_ms))
}

fn plural(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Returns who a runner is, as in "behind 3 invocations of resize".
fn runner(one: &Instead) -> String {
    match one.class {
        "function" => {
            let count = plural(one.invocations as u64, "invocation", "invocations");
            format!("{count} of {}", one.name)
        }
        "kernel" => format!("the kernel thread {}", one.name),
        "real_time" => format!("the real-time task {}", one.name),
        _ => format!("{} (not a function)", one.name),
    }
}

/// Returns the part of a sentence that names who was before it.
fn behind(ran: &[Instead]) -> String {
    let Some(first) = ran.first() else {
        return String::new();
    };
    if first.class == "idle" {
        return format!(
            ", although its CPUs idled for {} of that",
            percent(first.share)
        );
    }
    format!(" behind {}", runner(first))
}

/// Returns the list of who used the CPUs.
fn list(ran: &[Instead]) -> String {
    let shown = ran.iter().take(RUNNERS).filter(|one| one.share >= SMALL);
    let mut words: Vec<String> = shown
        .clone()
        .map(|one| match one.class {
            "idle" => format!("idle {}", percent(one.share)),
            _ => format!("{} {}", runner(one), percent(one.share)),
        })
        .collect();
    let rest: f64 = ran.iter().skip(shown.count()).map(|one| one.share).sum();
    if rest >= SMALL {
        words.push(format!("others {}", percent(rest)));
    }
    words.join(", ")
}

/// Returns where the time of an invocation went, in sentences without a full stop.
pub fn sentences(slow: &Slow) -> Vec<String> {
    let of = |kind: Kind| slow.parts.get(kind.name()).copied().unwrap_or_default();
    let is_shown = |ms: f64| ms > 0.0 && ms >= SMALL * slow.took_ms;
    let mut parts: Vec<(f64, String)> = Vec::new();
    let mut waits: Vec<(f64, &str)> = (Kind::ALL.iter())
        .filter_map(|kind| match kind {
            Kind::Queued(queue) => Some((of(*kind), in_words(*queue))),
            _ => None,
        })
        .filter(|(ms, _)| is_shown(*ms))
        .collect();
    waits.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (place, (ms, words)) in waits.into_iter().enumerate() {
        let mut sentence = format!("waited {} {words}", part(slow, ms));
        if place == 0 {
            sentence += &behind(&slow.ran_instead);
        }
        parts.push((ms, sentence));
    }
    let displaced = of(Kind::Displaced);
    if is_shown(displaced) {
        let mut sentence = format!(
            "was displaced by real-time work for {}",
            part(slow, displaced)
        );
        let by = slow
            .displaced_by
            .iter()
            .find(|one| one.class == "real_time");
        if let Some(by) = by {
            sentence += &format!(": {}", runner(by));
        }
        parts.push((displaced, sentence));
    }
    let parked = of(Kind::Parked);
    if is_shown(parked) {
        let group = slow.parked_by.as_deref().unwrap_or("its cgroup");
        parts.push((
            parked,
            format!(
                "was parked for {}: {group} was out of quota (cpu.max)",
                part(slow, parked)
            ),
        ));
    }
    parts.extend(running(slow, &of).filter(|(ms, _)| is_shown(*ms)));
    let others = [
        (Kind::BlockedIo, "was blocked by input or output for"),
        (
            Kind::Blocked,
            "was blocked (slept, or waited for others) for",
        ),
        (Kind::Unseen, "waited before a process turned to it for"),
    ];
    for (kind, words) in others {
        if is_shown(of(kind)) {
            parts.push((of(kind), format!("{words} {}", part(slow, of(kind)))));
        }
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sentences: Vec<String> = parts.into_iter().map(|(_, sentence)| sentence).collect();
    let queued = (Kind::ALL.iter()).filter(|kind| matches!(kind, Kind::Queued(_)));
    let queued = queued.map(|kind| of(*kind)).sum();
    for (when, ms, ran) in [
        ("while it waited", queued, &slow.ran_instead),
        ("while it was displaced", displaced, &slow.displaced_by),
    ] {
        let list = list(ran);
        if is_shown(ms) && !list.is_empty() {
            let cpus = match slow.cpus {
                1 => "its one CPU".to_owned(),
                count => format!("its {count} CPUs"),
            };
            sentences.push(format!("{when}, {cpus} had: {list}"));
        }
    }
    sentences
}

/// Returns the sentence about its CPU time, with the time.
fn running<'a>(
    slow: &'a Slow,
    of: &'a impl Fn(Kind) -> f64,
) -> impl Iterator<Item = (f64, String)> + 'a {
    let turns: Vec<(Turn, f64)> = (Kind::ALL.iter())
        .filter_map(|kind| match kind {
            Kind::Running(turn) => Some((*turn, of(*kind))),
            _ => None,
        })
        .filter(|(_, ms)| *ms > 0.0)
        .collect();
    let sum: f64 = turns.iter().map(|(_, ms)| ms).sum();
    let detail: Vec<String> = turns
        .iter()
        .filter(|(turn, ms)| *turn != Turn::Other && *ms >= SMALL * slow.took_ms)
        .map(|(turn, ms)| format!("{} {}", turn.name(), time(*ms)))
        .collect();
    let mut sentence = format!("ran for {}", part(slow, sum));
    if !detail.is_empty() {
        sentence += &format!(": {}", detail.join(", "));
    }
    (sum > 0.0).then_some((sum, sentence)).into_iter()
}

/// Returns the report as text.
pub fn text(report: &Report) -> String {
    let limit = time(report.slower_than_ms);
    let mut lines = vec![format!(
        "{} of {} that ended in {} took {limit} or longer ({})",
        report.slower,
        plural(report.ended, "invocation", "invocations"),
        time(report.watched_ms),
        report.scheduler,
    )];
    if report.slower_in_progress > 0 {
        lines.push(format!(
            "{} that have not ended took as long by then",
            report.slower_in_progress
        ));
    }
    for (place, slow) in report.slowest.iter().enumerate() {
        let cgroup = slow.cgroup.as_deref().filter(|path| !path.is_empty());
        let cgroup = cgroup.map_or(String::new(), |path| format!(", cgroup {path}"));
        let end = if slow.finished { "" } else { ", not ended" };
        let arrived = if slow.before_ms > 0.0 {
            format!("arrived {} before the watch", time(slow.before_ms))
        } else {
            format!("arrived after {:.3} s", slow.arrived_ms / 1e3)
        };
        lines.push(String::new());
        lines.push(format!(
            "{}. {} (process {}{cgroup}): {}{end}, {arrived}",
            place + 1,
            slow.function,
            slow.pid,
            time(slow.took_ms),
        ));
        lines.extend(
            slow.sentences
                .iter()
                .map(|sentence| format!("   {sentence}")),
        );
        if slow.unrecorded > 0 {
            lines.push(format!(
                "   it changed too often: who ran instead is not known for its last {} changes",
                slow.unrecorded
            ));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn instead(name: &str, class: &'static str, invocations: usize, share: f64) -> Instead {
        Instead {
            name: name.into(),
            class,
            invocations,
            cpu_ms: share * 2400.0,
            share,
        }
    }

    fn slow() -> Slow {
        let mut slow = Slow {
            function: "resize".into(),
            pid: 412,
            cgroup: Some("fn/resize-1".into()),
            arrived_ms: 1204.0,
            took_ms: 862.0,
            finished: true,
            before_ms: 0.0,
            parts: BTreeMap::from([
                ("queued_fair", 612.0),
                ("queued_filter", 10.0),
                ("running_fair", 100.0),
                ("running_filter", 90.0),
                ("parked", 40.0),
                ("blocked", 8.0),
                ("queued_local", 2.0),
            ]),
            cpus: 4,
            ran_instead: vec![
                instead("crop", "function", 3, 0.88),
                instead("sshd", "outside", 0, 0.1),
                instead("idle", "idle", 0, 0.02),
            ],
            displaced_by: Vec::new(),
            parked_by: Some("fn/resize-1".into()),
            unrecorded: 0,
            sentences: Vec::new(),
        };
        slow.sentences = sentences(&slow);
        slow
    }

    #[test]
    fn the_largest_part_comes_first() {
        let expected = [
            "waited 612 ms (71 %) in FAIR behind 3 invocations of crop",
            "ran for 190 ms (22 %): FILTER 90 ms, FAIR 100 ms",
            "was parked for 40 ms (5 %): fn/resize-1 was out of quota (cpu.max)",
            "waited 10 ms (1 %) in FILTER",
            "was blocked (slept, or waited for others) for 8.0 ms (1 %)",
            "while it waited, its 4 CPUs had: 3 invocations of crop 88 %, sshd (not a function) \
             10 %, idle 2 %",
        ];
        assert_eq!(slow().sentences, expected);
    }

    #[test]
    fn the_report_says_what_was_seen() {
        let report = Report {
            scheduler: "scx_sfs".into(),
            watched_ms: 12_345.0,
            slower_than_ms: 500.0,
            ended: 120,
            slower: 1,
            slower_in_progress: 2,
            lost_events: 0,
            missing: Vec::new(),
            slowest: vec![slow()],
        };
        let text = text(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "1 of 120 invocations that ended in 12.3 s took 500 ms or longer (scx_sfs)",
                "2 that have not ended took as long by then",
                "",
                "1. resize (process 412, cgroup fn/resize-1): 862 ms, arrived after 1.204 s",
            ]
        );
    }

    #[test]
    fn idle_cpus_and_real_time_tasks_are_named() {
        let mut one = slow();
        one.parts = BTreeMap::from([("queued", 600.0), ("displaced", 262.0)]);
        one.ran_instead = vec![instead("idle", "idle", 0, 0.9)];
        one.displaced_by = vec![instead("pump", "real_time", 0, 0.99)];
        let sentences = sentences(&one);
        assert_eq!(
            sentences[..2],
            [
                "waited 600 ms (70 %) for a CPU, although its CPUs idled for 90 % of that",
                "was displaced by real-time work for 262 ms (30 %): the real-time task pump",
            ]
        );
    }
}
