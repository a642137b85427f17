//! The trace: Table I of the SFS paper by its artefact, or a file of the user.

use crate::settings::Settings;
use anyhow::{Context, Result};
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::tree::Tree;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes the trace to `path`; returns its functions, a space behind each.
///
/// # Errors
/// If the user's trace cannot be read, if `faasbench gen` fails, or if `path` cannot be written.
pub fn make(tree: &Tree, settings: &Settings, path: &Path) -> Result<String> {
    match &settings.trace {
        Some(given) => {
            if let Err(error) = fs::copy(given, path) {
                let given = given.display();
                refuse!("cannot use TRACE={given}: {error}; name a readable trace");
            }
        }
        None => {
            let text = by_twos(&generated(tree, settings)?);
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(functions(&String::from_utf8_lossy(&text)))
}

/// Table I as `faasbench gen table1-artefact` makes it: the published figures are with it.
fn generated(tree: &Tree, settings: &Settings) -> Result<String> {
    let output = Command::new(tree.at(tree.program("faasbench")))
        .args([
            "gen",
            "table1-artefact",
            "--invocations",
            &settings.invocations,
        ])
        .args(["--load", &settings.load, "--scale", &settings.scale])
        .args(["--seed", &settings.seed])
        .args(["--cpus", &settings.cpus.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run faasbench")?;
    if !output.status.success() {
        let status = output.status.code().unwrap_or(1);
        return Err(Failure::of_program("faasbench gen", status).into());
    }
    String::from_utf8(output.stdout).context("faasbench gen did not print text")
}

/// The functions fib20 to fib35 by twos, as fib20 for fib20 and fib21: a platform for each
/// starts in half the time.
fn by_twos(trace: &str) -> String {
    trace
        .lines()
        .map(|line| line_by_twos(line) + "\n")
        .collect()
}

fn line_by_twos(line: &str) -> String {
    let mut fields: Vec<&str> = line.split(',').collect();
    let number = fields.get(1).and_then(|function| {
        let digits = function.strip_prefix("fib")?;
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| is_plain)
    });
    let Some(number) = number else {
        return line.to_owned();
    };
    let function = format!("fib{}", number - number % 2);
    fields[1] = &function;
    fields.join(",")
}

/// The functions of a trace in the order of their names, each once, a space behind each.
fn functions(trace: &str) -> String {
    let rows = trace.lines().skip(1);
    let names: BTreeSet<&str> = rows.filter_map(|row| row.split(',').nth(1)).collect();
    names.iter().map(|name| format!("{name} ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "arrival_us,function,service_us\n\
                         0,fib25,10\n\
                         5,fib24,11\n\
                         7,fib9,1\n\
                         8,fibre3,1\n\
                         9,fib+3,1\n";

    #[test]
    fn two_numbers_are_one_function() {
        let expected = TRACE.replace("fib25", "fib24").replace("fib9", "fib8");
        assert_eq!(by_twos(TRACE), expected);
    }

    #[test]
    fn each_function_is_there_once() {
        assert_eq!(functions(&by_twos(TRACE)), "fib+3 fib24 fib8 fibre3 ");
        assert_eq!(functions("arrival_us,function\n"), "");
    }
}
