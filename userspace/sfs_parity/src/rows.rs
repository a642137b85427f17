//! The names of the rows.

use anyhow::Result;
use glob::Pattern;
use sfs_jobs::failure::refuse;
use std::collections::HashSet;

/// Ends the name of a row that runs beside functions.
pub const LOAD: &str = "+load";

/// The rows that users ask for first: handoffs, wake-ups, forks, messages, servers.
const FIRST_STRESSORS: &str =
    "affinity clone context cpu daemon epoll eventfd exec fifo fork futex \
    hrtimers kill mq msg mutex nanosleep nice pipe poll pthread resched sem sem-sysv session sock \
    sockpair switch tee timer vfork wait yield zombie";

const PERF: &str = "sched/messaging sched/pipe futex/hash futex/wake futex/wake-parallel \
    futex/requeue futex/lock-pi epoll/wait";

/// Rows that are measured without a load and with it.
const WITH_LOAD: &str = "requests/4 requests/16 keystrokes nginx/throughput nginx/p99 \
    redis/get/throughput redis/get/p99 redis/set/throughput redis/set/p99 \
    postgres/select/throughput postgres/select/p99 postgres/write/throughput postgres/write/p99 \
    compile";

/// The rows that matter most.
pub fn first() -> Vec<String> {
    with_others(FIRST_STRESSORS.split_whitespace())
}

/// All rows, where stress-ng has these stressors.
pub fn all(stressors: &[String]) -> Vec<String> {
    with_others(stressors.iter().map(String::as_str))
}

/// Each stressor with one instance, and with one for each CPU; and the other rows.
fn with_others<'a>(stressors: impl Iterator<Item = &'a str>) -> Vec<String> {
    let rows =
        stressors.flat_map(|name| ["1", "all"].map(|count| format!("stress/{name}/{count}")));
    rows.chain(others()).collect()
}

/// Rows that are not stress-ng's.
fn others() -> Vec<String> {
    let pairs = |what: &'static str, first: &'static [&str], second: &'static [&str]| {
        let rows = first.iter().flat_map(move |one| {
            second
                .iter()
                .map(move |other| format!("{what}/{one}/{other}"))
        });
        rows.collect::<Vec<_>>()
    };
    let mut rows = pairs("hackbench", &["pipe", "socket"], &["process", "thread"]);
    rows.extend(pairs("handoffs", &["pipe", "socket", "futex"], &["1", "4"]));
    rows.extend(PERF.split_whitespace().map(|row| format!("perf/{row}")));
    let two = |row: &str| [row.to_string(), format!("{row}{LOAD}")];
    rows.extend(WITH_LOAD.split_whitespace().flat_map(two));
    rows
}

/// The rows of `all` that match one of the patterns, each once.
///
/// # Errors
/// If a pattern matches none.
///
/// # Example
///
/// ```
/// use sfs_parity::rows::chosen;
///
/// let all = ["redis/get".to_string(), "compile".to_string()];
/// assert_eq!(chosen(&all, &["r*".to_string()]).unwrap(), ["redis/get"]);
/// assert!(chosen(&all, &["nginx".to_string()]).is_err());
/// ```
pub fn chosen(all: &[String], patterns: &[String]) -> Result<Vec<String>> {
    let (mut seen, mut rows) = (HashSet::new(), Vec::new());
    for text in patterns {
        let pattern = Pattern::new(text).ok();
        let matches = |row: &&String| pattern.as_ref().is_some_and(|pattern| pattern.matches(row));
        let found: Vec<&String> = all.iter().filter(matches).collect();
        if found.is_empty() {
            refuse!("there is no row '{text}'; --list has them all");
        }
        rows.extend(found.into_iter().filter(|row| seen.insert(*row)).cloned());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_one_name_each() {
        let rows = first();
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), rows.len());
        for row in [
            "stress/sem-sysv/all",
            "hackbench/socket/thread",
            "handoffs/futex/4",
            "perf/epoll/wait",
            "compile+load",
        ] {
            assert!(rows.iter().any(|name| name == row), "{row}");
        }
    }

    #[test]
    fn patterns_reach_across_slashes() {
        let all = all(&["cpu".to_string(), "cpu-online".to_string()]);
        let patterns = ["redis/*+load", "stress/cpu/?", "stress/c*/1"].map(String::from);
        let rows = chosen(&all, &patterns).unwrap();
        assert_eq!(
            rows,
            [
                "redis/get/throughput+load",
                "redis/get/p99+load",
                "redis/set/throughput+load",
                "redis/set/p99+load",
                "stress/cpu/1",
                "stress/cpu-online/1"
            ]
        );
        let error = chosen(&all, &["[".to_string()]).unwrap_err();
        assert!(error.to_string().contains("no row '['"), "{error}");
    }
}
