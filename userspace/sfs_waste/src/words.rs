//! A report in words.

use std::fmt;

use crate::account::{Report, Stretch};

/// The sum and the longest stretch, such as `3.26 ms of idle CPUs wasted in 543 ms, 1.24 at
/// once`.
pub fn total(report: &Report) -> String {
    format!(
        "{:.2} ms of idle CPUs wasted in {:.0} ms, {:.2} at once",
        ms(report.wasted_ns()),
        ms(report.watched_ns()),
        ms(report.longest_ns())
    )
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) waited {:.2} ms beside the idle CPU {}, from {:.3} s on",
            self.name,
            self.thread,
            ms(self.length_ns),
            self.cpu,
            self.from_ns as f64 / 1e9
        )
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_says_who_waited_where_and_when() {
        let stretch = Stretch {
            from_ns: 8_227_000_000,
            length_ns: 720_000,
            thread: 340,
            name: "handler".into(),
            cpu: 2,
        };
        assert_eq!(
            stretch.to_string(),
            "handler (340) waited 0.72 ms beside the idle CPU 2, from 8.227 s on"
        );
        let report = Report {
            watched: vec![(0, 543_000_000)],
            stretches: vec![stretch],
            lost: 0,
        };
        let words = "0.72 ms of idle CPUs wasted in 543 ms, 0.72 at once";
        assert_eq!(total(&report), words);
    }
}
