//! The learned state of functions, as `scx_sfs functions` prints it.

use std::cmp::Reverse;
use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sfs_policy::learn::Known;

use super::Learning;
use crate::bpf_intf::{SFS_FUNCTION_COMM, SFS_FUNCTION_NAMED};

/// The learned state of one function, as `scx_sfs functions` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionReport {
    /// Its name, or its identity if it has none.
    pub function: String,
    /// Number of completions.
    pub completions: u32,
    /// Median CPU time of its recent invocations, in ms.
    pub p50_ms: Option<f64>,
    /// 90th percentile of the same, in ms.
    pub p90_ms: Option<f64>,
    /// 99th percentile of the same, in ms.
    pub p99_ms: Option<f64>,
    /// The rank of a new invocation, lower is earlier; None as long as there are no ranks.
    pub rank: Option<u8>,
    /// Its share (0 to 1) of the CPU time of all functions.
    pub work_share: f64,
}

fn identity_name(key: u64) -> String {
    if key & NAMED != 0 {
        format!("name:{:x}", key & !NAMED)
    } else {
        format!("comm:{:x}", key & !SFS_FUNCTION_COMM)
    }
}

// bindgen reads the top bit as a sign.
const NAMED: u64 = SFS_FUNCTION_NAMED as u64;

impl Learning {
    /// Returns reports of the `most` functions with the most work, in this order. `name`
    /// returns the name of a function, if it has one.
    ///
    /// For the other functions only the work is read. With 100,000 functions this takes
    /// milliseconds, in which the control loop does nothing else.
    pub fn functions(
        &self,
        most: usize,
        name: impl Fn(u64) -> Option<String>,
    ) -> Vec<FunctionReport> {
        let mut known: Vec<Known<'_>> = self.learner.functions().collect();
        let all: u128 = known.iter().map(|one| u128::from(one.work_ns())).sum();
        if known.len() > most {
            known.select_nth_unstable_by_key(most, |one| Reverse(one.work_ns()));
            known.truncate(most);
        }
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        let mut reports: Vec<FunctionReport> = known
            .iter()
            .map(|one| FunctionReport {
                function: name(one.key()).unwrap_or_else(|| identity_name(one.key())),
                completions: one.completions(),
                p50_ms: ms(one.quantile_ns(0.5)),
                p90_ms: ms(one.quantile_ns(0.9)),
                p99_ms: ms(one.quantile_ns(0.99)),
                rank: one.rank().filter(|_| !self.given_up),
                work_share: one.work_ns() as f64 / all.max(1) as f64,
            })
            .collect();
        reports.sort_by(|a, b| {
            b.work_share
                .total_cmp(&a.work_share)
                .then_with(|| a.function.cmp(&b.function))
        });
        reports
    }
}

/// Prints the `count` functions with the most work that the running scheduler knows.
///
/// # Errors
///
/// No scx_sfs answers.
pub fn print_functions(count: usize) -> Result<()> {
    let reports: Vec<FunctionReport> = scx_stats::StatsClient::new()
        .connect(Some(5000))
        .and_then(|mut client| {
            let arguments = vec![
                ("target".to_string(), "functions".to_string()),
                ("count".to_string(), count.to_string()),
            ];
            client.request("stats", arguments)
        })
        .context("no running scx_sfs with --policy learned answers")?;
    let mut out = io::stdout().lock();
    let header = "function completions p50_ms p90_ms p99_ms rank work";
    let columns: Vec<&str> = header.split(' ').collect();
    writeln!(
        out,
        "{:32} {:>11} {:>9} {:>9} {:>9} {:>4} {:>6}",
        columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]
    )?;
    for one in reports.iter().take(count) {
        writeln!(out, "{}", row(one))?;
    }
    Ok(())
}

/// Formats one function as seven words, whatever its name contains.
fn row(one: &FunctionReport) -> String {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".into(), |ms| format!("{ms:.1}"));
    format!(
        "{:32} {:>11} {:>9} {:>9} {:>9} {:>4} {:>5.1}%",
        sfs_text::word(&one.function),
        one.completions,
        ms(one.p50_ms),
        ms(one.p90_ms),
        ms(one.p99_ms),
        one.rank.map_or_else(|| "-".into(), |rank| rank.to_string()),
        100.0 * one.work_share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_row() {
        for code in 0..=0xff_u8 {
            let byte = char::from(code);
            for function in [byte.to_string(), format!("a{byte}"), format!("{byte} 1 2")] {
                let report = FunctionReport {
                    function,
                    completions: 3,
                    p50_ms: Some(1.0),
                    p90_ms: None,
                    p99_ms: None,
                    rank: Some(4),
                    work_share: 0.5,
                };
                let row = row(&report);
                assert_eq!(row.split_whitespace().count(), 7, "{row:?}");
                assert!(!row.contains(char::is_control), "{row:?}");
                assert!(
                    row.ends_with(" 3       1.0         -         -    4  50.0%"),
                    "{row:?}"
                );
            }
        }
    }

    #[test]
    fn functions_are_listed_by_their_work() {
        let mut learning = Learning::new(None);
        for _ in 0..3 {
            learning.learner.on_completion(1, 1_000_000);
        }
        learning.learner.on_completion(2, 9_000_000);
        let name = |key| (key == 1).then(|| "one".to_string());
        let reports = learning.functions(10, name);
        assert_eq!(reports[0].function, "comm:2");
        assert_eq!(
            (reports[1].function.as_str(), reports[1].completions),
            ("one", 3)
        );
        assert!((reports[0].work_share - 0.75).abs() < 1e-9);
        // The share is relative to all functions, however few are requested.
        assert_eq!(learning.functions(1, name), reports[..1]);
        assert!(learning.functions(0, name).is_empty());
    }
}
