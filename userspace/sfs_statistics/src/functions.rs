//! The learned state of functions, as `scx_sfs functions` prints it.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Form;

/// The learned state of one function, as `scx_sfs functions` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionReport {
    /// Its identity in the kernel half; not printed.
    #[serde(skip)]
    pub key: u64,
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

/// Prints the `count` functions with the most work that the running scheduler knows.
///
/// # Errors
///
/// No scx_sfs answers.
pub fn print_functions(count: usize, form: Form) -> Result<()> {
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
    if form == Form::Json {
        let most = &reports[..count.min(reports.len())];
        serde_json::to_writer_pretty(&mut out, most)?;
        return Ok(writeln!(out)?);
    }
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
                    key: 7,
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
}
