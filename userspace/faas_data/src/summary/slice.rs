//! S and the mode over time, from the log of a scheduler.
//!
//! `scx_sfs --log-slice` prints a line at its start and at each change:
//!
//! ```text
//! slice: monotonic_us=81234567 s_us=89070 mode=filter arrivals=100
//! ```

use crate::stats::Ms;
use serde::{Deserialize, Serialize};

/// The values of S and the mode, each from a time on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceLog {
    /// When, in milliseconds since the start of the replay; the initial values
    /// are at 0.
    pub at_ms: Vec<f64>,
    /// S in milliseconds from then on.
    pub s_ms: Vec<f64>,
    /// Whether fair-only mode is on from then on.
    pub fair_only: Vec<bool>,
}

/// One line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    monotonic_us: u64,
    s_us: u64,
    fair_only: bool,
}

impl SliceLog {
    /// The entries of `log` from `origin_us` on, the start of the replay on the
    /// monotonic clock; `None` if there are none. Truncated and other lines are
    /// ignored.
    pub fn parse(log: &str, origin_us: u64) -> Option<Self> {
        let entries: Vec<Entry> = log.lines().filter_map(parse_line).collect();
        let earlier = entries.partition_point(|one| one.monotonic_us <= origin_us);
        let mut own = Self::default();
        for one in &entries[earlier.saturating_sub(1)..] {
            own.at_ms
                .push(one.monotonic_us.saturating_sub(origin_us).ms());
            own.s_ms.push(one.s_us.ms());
            own.fair_only.push(one.fair_only);
        }
        (!own.at_ms.is_empty()).then_some(own)
    }
}

fn parse_line(line: &str) -> Option<Entry> {
    let (_, fields) = line.split_once("slice: monotonic_us=")?;
    let mut fields = fields.split(' ');
    let monotonic_us = fields.next()?.parse().ok()?;
    let s_us = fields.next()?.strip_prefix("s_us=")?.parse().ok()?;
    let fair_only = match fields.next()? {
        "mode=filter" => false,
        "mode=fair-only" => true,
        _ => return None,
    };
    Some(Entry {
        monotonic_us,
        s_us,
        fair_only,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "INFO scx_sfs 0.1.0\n\
        INFO slice: monotonic_us=1000 s_us=100000 mode=filter arrivals=0\n\
        INFO slice: monotonic_us=5000 s_us=90000 mode=filter arrivals=100\n\
        INFO something else\n\
        INFO slice: monotonic_us=17500 s_us=90000 mode=fair-only arrivals=150\n\
        INFO slice: monotonic_us=2";

    #[test]
    fn times_are_since_the_start_of_the_replay() {
        let found = SliceLog::parse(LOG, 7000).unwrap();
        assert_eq!(found.at_ms, [0.0, 10.5]);
        assert_eq!(found.s_ms, [90.0, 90.0]);
        assert_eq!(found.fair_only, [false, true]);
        assert_eq!(SliceLog::parse(LOG, 500).unwrap().at_ms.len(), 3);
        assert_eq!(SliceLog::parse(LOG, 9_999_999).unwrap().at_ms, [0.0]);
    }

    #[test]
    fn a_log_without_such_lines_gives_none() {
        for log in [
            "",
            "slice: 5\n",
            "slice: monotonic_us=1 s_us=x mode=filter\n",
        ] {
            assert_eq!(SliceLog::parse(log, 0), None);
        }
    }
}
