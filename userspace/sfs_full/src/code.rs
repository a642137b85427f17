//! Which code a result is about.

use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::process::Command;

/// What decides about a result: what is tested, and what tests it. Documentation does not.
const PATHS: [&str; 7] = [
    "Makefile",
    "scheds",
    "scripts",
    "tests",
    "userspace",
    "vm",
    "rust-toolchain.toml",
];

/// Bytes of the checksum that stand for the code.
const BYTES: usize = 6;

/// The code of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The same for commits that differ in documentation only: the beginning of a checksum, in
    /// hexadecimal digits.
    pub id: String,
    /// The commit, abbreviated.
    pub commit: String,
    /// The changes that are not committed, a line each, as `git status --porcelain` has them.
    changes: String,
}

impl Code {
    /// The code of the checked out commit.
    ///
    /// # Errors
    /// If this is no clone, or there is no git.
    pub fn of(tree: &Tree) -> Result<Self> {
        let paths = |arguments: &[&str]| git(tree, &[arguments, &["--"], &PATHS].concat());
        let objects = git(tree, &[&["ls-tree", "HEAD"], &PATHS[..]].concat())?;
        let mut id = String::new();
        for byte in &Sha256::digest(objects)[..BYTES] {
            write!(id, "{byte:02x}")?;
        }
        Ok(Self {
            id,
            commit: git(tree, &["rev-parse", "--short=7", "HEAD"])?
                .trim()
                .into(),
            changes: paths(&["status", "--porcelain"])?,
        })
    }

    /// The first seed of a search for this code: another code begins with others.
    pub fn seed(&self) -> u64 {
        let digits = self.id.get(..8).unwrap_or_default();
        // Room for a thousand seeds, and more, before those of the next number.
        u64::from_str_radix(digits, 16).unwrap_or(1) * 1000
    }

    /// A code for tests.
    #[cfg(test)]
    pub fn for_test(id: &str) -> Self {
        Self {
            id: id.into(),
            commit: id.into(),
            changes: String::new(),
        }
    }

    /// The same, if all of it is committed.
    ///
    /// # Errors
    /// If a file differs from the commit.
    pub fn committed(&self) -> Result<&Self> {
        if let Some(first) = self.changes.lines().next() {
            refuse!(
                "a result is kept with its commit, and {} is not committed: commit or stash it first",
                first.get(3..).unwrap_or(first)
            );
        }
        Ok(self)
    }
}

fn git(tree: &Tree, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(tree.root())
        .args(arguments)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let what = arguments[0];
        refuse!(
            "git {what} fails in {}: {}",
            tree.root().display(),
            why.trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
