//! Reports as text.

use std::fmt;

use crate::report::{Report, Stretch};
use crate::waits::{Kind, Runner, Wait};

/// The total and the longest stretch, such as `3.26 ms of idle CPUs wasted in
/// 543 ms, 1.24 at once`.
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
            "{} ({}) waited {:.2} ms while CPU {} idled, from {:.3} s on",
            self.name,
            self.thread,
            ms(self.length_ns),
            self.cpu,
            self.from_ns as f64 / 1e9
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel thread",
            Self::Short => "after a short turn",
            Self::Other => "other",
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, {}) waited {:.2} ms for a CPU, from {:.3} s on",
            self.name,
            self.thread,
            self.kind,
            ms(self.length_ns),
            self.from_ns as f64 / 1e9
        )?;
        for (i, runner) in self.behind.iter().enumerate() {
            write!(f, "{}{runner}", if i == 0 { ", behind " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.thread, self.name.as_str()) {
            (0, _) => f.write_str("idle")?,
            (thread, "") => write!(f, "{thread}")?,
            (thread, name) => write!(f, "{name} ({thread})")?,
        }
        write!(f, " {:.2}", ms(self.length_ns))
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_names_thread_cpu_and_time() {
        let stretch = Stretch {
            from_ns: 8_227_000_000,
            length_ns: 720_000,
            thread: 340,
            name: "handler".into(),
            cpu: 2,
        };
        assert_eq!(
            stretch.to_string(),
            "handler (340) waited 0.72 ms while CPU 2 idled, from 8.227 s on"
        );
        let report = Report {
            watched: vec![(0, 543_000_000)],
            stretches: vec![stretch],
            ..Report::default()
        };
        let words = "0.72 ms of idle CPUs wasted in 543 ms, 0.72 at once";
        assert_eq!(total(&report), words);
    }

    #[test]
    fn a_wait_names_the_threads_ahead() {
        let runner = |thread, name: &str, length_ns| Runner {
            thread,
            name: name.into(),
            length_ns,
        };
        let behind = vec![
            runner(340, "handler", 7_000_000),
            runner(0, "", 1_000_000),
            runner(12, "", 500_000),
        ];
        let wait = Wait {
            from_ns: 8_227_000_000,
            length_ns: 8_500_000,
            thread: 9,
            name: "kworker/0:0".into(),
            kind: Kind::Kernel,
            behind,
        };
        assert_eq!(
            wait.to_string(),
            "kworker/0:0 (9, kernel thread) waited 8.50 ms for a CPU, from 8.227 s on, \
             behind handler (340) 7.00, idle 1.00, 12 0.50"
        );
    }
}
