//! The first two lines.

use crate::history::mode;
use crate::sample::{Sample, Scheduler};
use crate::words::{clock, percent, time_us};

/// Returns the lines, each at most `width` wide where that is possible: what matters least is
/// left out first.
pub fn lines(sample: Option<&Sample>, width: u16) -> [String; 2] {
    let Some(sample) = sample else {
        return ["scx_sfs: asking the scheduler".to_owned(), String::new()];
    };
    let first = match (&sample.scheduler, &sample.missing) {
        (Some(scheduler), _) => fitted(of_scheduler(scheduler), width),
        (None, why) => {
            let why = why.as_deref().unwrap_or("no scx_sfs answers");
            format!("{why}; waiting for one")
        }
    };
    let mut words = of_machine(sample);
    if let Some(scheduler) = &sample.scheduler {
        words.extend(of_work(scheduler));
    }
    let busy = sample.machine.busy_share.map(percent);
    words.extend(busy.map(|busy| format!("busy {busy}")));
    [first, fitted(words, width)]
}

/// Returns whether the first line needs attention.
pub fn is_alarming(sample: Option<&Sample>) -> bool {
    match sample.map(|one| &one.scheduler) {
        Some(Some(scheduler)) => scheduler.metrics.mode != 0,
        Some(None) => true,
        None => false,
    }
}

/// Joins as many of the words as fit.
fn fitted(words: Vec<String>, width: u16) -> String {
    let mut line = String::new();
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        let gap = if line.is_empty() { "" } else { "  " };
        let length = line.chars().count() + gap.len() + word.chars().count();
        if !line.is_empty() && length > usize::from(width) {
            break;
        }
        line += gap;
        line += &word;
    }
    line
}

fn of_scheduler(scheduler: &Scheduler) -> Vec<String> {
    let metrics = &scheduler.metrics;
    // Without the target, which is the machine's.
    let version = metrics.build.split(' ').next().unwrap_or_default();
    vec![
        format!("scx_sfs {}", sfs_text::word(version)),
        format!("policy {}", sfs_text::word(&metrics.policy)),
        format!("mode {}", mode(metrics.mode != 0)),
        format!("S {}", time_us(metrics.slice_us as f64)),
        format!("up {}", clock(metrics.uptime_s)),
        scheduler
            .pid
            .map_or_else(String::new, |pid| format!("pid {pid}")),
    ]
}

fn of_machine(sample: &Sample) -> Vec<String> {
    let machine = &sample.machine;
    let cpus = match &sample.scheduler {
        Some(scheduler) if scheduler.metrics.cpus != machine.cpus => {
            format!("{} of {} CPUs", scheduler.metrics.cpus, machine.cpus)
        }
        _ => format!("{} CPUs", machine.cpus),
    };
    let load = machine
        .load
        .map_or_else(String::new, |[one, five, fifteen]| {
            format!("load {one:.2} {five:.2} {fifteen:.2}")
        });
    vec![cpus, load]
}

fn of_work(scheduler: &Scheduler) -> Vec<String> {
    let metrics = &scheduler.metrics;
    let delay = match metrics.queue_delay_max_us {
        0 => String::new(),
        longest => {
            let p99 = time_us(metrics.queue_delay_p99_us as f64);
            format!("delay p99 {p99} max {}", time_us(longest as f64))
        }
    };
    vec![
        delay,
        format!("{} functions", metrics.functions),
        format!("{} sandboxes", metrics.sandboxes),
        format!("{} rank tables", metrics.rank_tables),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Machine;

    fn sample() -> Sample {
        let mut scheduler = Scheduler {
            pid: Some(161),
            ..Scheduler::default()
        };
        scheduler.metrics.build = "0.1.0 x86_64-unknown-linux-gnu".into();
        scheduler.metrics.policy = "learned".into();
        scheduler.metrics.slice_us = 100_000;
        scheduler.metrics.uptime_s = 3723;
        scheduler.metrics.cpus = 4;
        scheduler.metrics.functions = 20;
        scheduler.metrics.queue_delay_p99_us = 1_048_576;
        scheduler.metrics.queue_delay_max_us = 863_212;
        Sample {
            scheduler: Some(scheduler),
            machine: Machine {
                cpus: 4,
                load: Some([0.8, 0.17, 0.05]),
                busy_share: Some(0.5),
                ..Machine::default()
            },
            ..Sample::default()
        }
    }

    #[test]
    fn the_lines_say_what_runs_and_how() {
        let [first, second] = lines(Some(&sample()), 80);
        assert_eq!(
            first,
            "scx_sfs 0.1.0  policy learned  mode FILTER  S 100 ms  up 1:02:03  pid 161"
        );
        assert_eq!(
            second,
            "4 CPUs  load 0.80 0.17 0.05  delay p99 1.05 s max 863 ms  20 functions"
        );
        assert!(!is_alarming(Some(&sample())));
        let [_, second] = lines(Some(&sample()), 120);
        assert_eq!(
            second,
            "4 CPUs  load 0.80 0.17 0.05  delay p99 1.05 s max 863 ms  20 functions  \
             0 sandboxes  0 rank tables  busy 50.0%"
        );
        let [first, second] = lines(Some(&sample()), 20);
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("scx_sfs 0.1.0", "4 CPUs")
        );
    }

    #[test]
    fn a_scheduler_that_is_not_there_is_reported() {
        let missing = Sample {
            missing: Some("no scx_sfs is running".into()),
            ..Sample::default()
        };
        let [first, second] = lines(Some(&missing), 80);
        assert_eq!(first, "no scx_sfs is running; waiting for one");
        assert_eq!(second, "0 CPUs");
        assert!(is_alarming(Some(&missing)) && !is_alarming(None));
        let mut overloaded = sample();
        let scheduler = overloaded.scheduler.as_mut().unwrap();
        scheduler.metrics.mode = 1;
        scheduler.metrics.cpus = 2;
        let [first, second] = lines(Some(&overloaded), 80);
        assert!(first.contains("mode fair-only"), "{first}");
        assert!(second.starts_with("2 of 4 CPUs"), "{second}");
        assert!(is_alarming(Some(&overloaded)));
    }
}
