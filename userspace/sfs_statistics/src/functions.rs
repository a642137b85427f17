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
    let columns = match form {
        Form::Text { columns } => columns,
        Form::Json => usize::MAX,
    };
    let header = "function completions p50_ms p90_ms p99_ms rank work";
    let titles: Vec<&str> = header.split(' ').collect();
    writeln!(
        out,
        "{:26} {:>11} {:>9} {:>9} {:>9} {:>4} {:>6}",
        titles[0], titles[1], titles[2], titles[3], titles[4], titles[5], titles[6]
    )?;
    for one in reports.iter().take(count) {
        writeln!(out, "{}", row(one, columns))?;
    }
    Ok(())
}

/// Returns a name in at most `room` characters. Its end is kept: that of a path tells most.
fn cut(name: &str, room: usize) -> String {
    const LEFT_OUT: &str = "...";
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(LEFT_OUT.len());
    let tail: String = name.chars().skip(length - kept).collect();
    format!("{LEFT_OUT}{tail}")
}

/// Formats one function as seven words, whatever its name contains. A name too long for a line
/// of `columns` is cut.
fn row(one: &FunctionReport, columns: usize) -> String {
    /// Width of the other words.
    const OTHERS: usize = 54;
    /// Names are not cut to less.
    const LEAST: usize = 12;
    let name = sfs_text::word(&one.function);
    let name = cut(&name, columns.saturating_sub(OTHERS).max(LEAST));
    let ms = |value: Option<f64>| value.map_or_else(|| "-".into(), |ms| format!("{ms:.1}"));
    format!(
        "{name:26} {:>11} {:>9} {:>9} {:>9} {:>4} {:>5.1}%",
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
    fn a_row_keeps_to_the_width_of_a_terminal() {
        let report = FunctionReport {
            key: 0,
            function: format!("kubepods.slice/{}.scope", "9ab".repeat(30)),
            completions: 3,
            p50_ms: Some(1.0),
            p90_ms: None,
            p99_ms: None,
            rank: Some(4),
            work_share: 0.5,
        };
        let narrow = row(&report, 80);
        assert_eq!(narrow.chars().count(), 80, "{narrow}");
        assert!(
            narrow.starts_with("...") && narrow.contains("9ab.scope "),
            "{narrow}"
        );
        assert!(row(&report, usize::MAX).starts_with("kubepods.slice/9ab"));
        assert!(row(&report, 7).starts_with("...9ab.scope "));
    }

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
                let row = row(&report, usize::MAX);
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
