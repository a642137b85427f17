//! The names of the cases, as `sfs_behaviour` lists them.

use crate::kind::Kind;
use anyhow::{Context, Result};
use sfs_jobs::failure::Failure;
use sfs_jobs::job;
use sfs_jobs::tree::Tree;

/// The program that has the cases, and runs them in a guest.
pub const PROGRAM: &str = "sfs_behaviour";

/// Begins the program's last message if it gives up.
const BAIL_OUT: &str = "Bail out! ";

/// The cases that somebody wants, by the machine that they need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// The cases that need no machine of their own, in the suite's order.
    pub plain: Vec<String>,
    /// The others.
    pub apart: Vec<(Kind, Vec<String>)>,
}

impl Cases {
    /// Asks the program which cases `patterns` stands for; all without a pattern.
    ///
    /// # Errors
    /// If a pattern stands for none, or the program cannot be run.
    pub fn find(tree: &Tree, patterns: &[String]) -> Result<Self> {
        let mut plain = names(&list(tree, &[], patterns)?);
        let mut apart = Vec::new();
        for kind in Kind::ALL {
            let cases = names(&list(tree, &["--apart", kind.name()], patterns)?);
            plain.retain(|name| !cases.contains(name));
            if !cases.is_empty() {
                apart.push((kind, cases));
            }
        }
        Ok(Self { plain, apart })
    }
}

/// The program's list: a line for each case, its name first.
///
/// # Errors
/// As [`Cases::find`].
pub fn list(tree: &Tree, options: &[&str], patterns: &[String]) -> Result<String> {
    let mut program = job::call(tree, tree.program(PROGRAM));
    let output = program
        .arg("--list")
        .args(options)
        .args(patterns)
        .output()
        .with_context(|| format!("cannot run {PROGRAM}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let why = said.trim_end();
        let why = why.strip_prefix(BAIL_OUT).unwrap_or(why);
        return Err(Failure::Usage(why.to_string()).into());
    }
    Ok(said)
}

/// The first word of each line that [`list`] returns.
pub fn names(listed: &str) -> Vec<String> {
    let first_words = listed.lines().filter_map(|line| line.split(' ').next());
    first_words.map(str::to_string).collect()
}
