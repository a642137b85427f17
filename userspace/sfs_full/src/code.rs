//! Which code a result is about.

use crate::sources;
use anyhow::{Context, Result};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use sha2::{Digest, Sha256};
use std::process::Command;

/// All code: what is tested, and what tests it. Documentation is none.
const PATHS: [&str; 7] = [
    "Makefile",
    "scheds",
    "scripts",
    "tests",
    "userspace",
    "vm",
    "rust-toolchain.toml",
];

/// What the behaviour suite and the stress mixes run in a guest, and what runs them.
const LIVE: [&str; 6] = [
    "scx_sfs",
    "sfs_advise",
    "sfs_behaviour",
    "sfs_crowd",
    "sfs_stress",
    "sfs_suite",
];

/// What decides about them besides.
const AROUND_LIVE: [&str; 4] = ["tests/run", "tests/unsteady", "tests/waste", "vm"];

/// What searches in the model, with the kernel half as it is and with variants of it.
const MODEL: [&str; 2] = ["sfs_model", "sfs_variants"];

/// What decides about that besides.
const AROUND_MODEL: [&str; 1] = ["tests/findings"];

/// What decides about each program: the kernel half, which is in all of them, and the compilers.
const AROUND_ALL: [&str; 4] = [
    "rust-toolchain.toml",
    "scheds",
    "scripts/rustc-anywhere",
    "userspace/.cargo",
];

/// The libraries of others, and the crates of the workspace.
const LOCK: &str = "userspace/Cargo.lock";

/// How all crates are built, and which there are.
const WORKSPACE: &str = "userspace/Cargo.toml";

/// Bytes of the checksum that stand for the code.
const BYTES: usize = 6;

/// Which part of the code a result is about. A change of the model, for example, says nothing about
/// a live kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// All of it.
    Everything,
    /// The scheduler and its cases in a live kernel.
    Live,
    /// The kernel half in the model.
    Model,
}

/// The code of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Beginnings of checksums, in hexadecimal digits: the same for commits that do not differ in
    /// what a result is about.
    everything: String,
    live: String,
    model: String,
    /// The commit, abbreviated.
    pub commit: String,
    /// The changes that are not committed, a line each, as `git status --porcelain` has them.
    changes: String,
}

impl Code {
    /// The code of the checked out commit.
    ///
    /// # Errors
    /// If this is no clone, there is no git, or a crate's description cannot be read.
    pub fn of(tree: &Tree) -> Result<Self> {
        let show = |path: &str| git(tree, &["show", &format!("HEAD:{path}")]);
        let others = sources::libraries(&show(LOCK)?) + &sources::settings(&show(WORKSPACE)?)?;
        let built = |crates: &[&str], around: &[&str]| {
            let folders = sources::folders(tree.root(), crates)?;
            let paths: Vec<&str> = folders.iter().map(String::as_str).collect();
            let objects = objects(tree, &[&paths, around, &AROUND_ALL].concat())?;
            Ok::<_, anyhow::Error>(checksum(&(objects + &others)))
        };
        let commit = git(tree, &["rev-parse", "--short=7", "HEAD"])?;
        let changes = [&["status", "--porcelain", "--"], &PATHS[..]].concat();
        Ok(Self {
            everything: checksum(&objects(tree, &PATHS)?),
            live: built(&LIVE, &AROUND_LIVE)?,
            model: built(&MODEL, &AROUND_MODEL)?,
            commit: commit.trim().into(),
            changes: git(tree, &changes)?,
        })
    }

    /// The same for commits that do not differ in what a result is about.
    pub fn id(&self, about: About) -> &str {
        match about {
            About::Everything => &self.everything,
            About::Live => &self.live,
            About::Model => &self.model,
        }
    }

    /// The first seed of a search for this code: another code begins with others.
    pub fn seed(&self) -> u64 {
        let digits = self.model.get(..8).unwrap_or_default();
        // Room for a thousand seeds, and more, before those of the next number.
        u64::from_str_radix(digits, 16).unwrap_or(1) * 1000
    }

    /// A code for tests.
    #[cfg(test)]
    pub fn for_test(id: &str) -> Self {
        Self {
            everything: id.into(),
            live: id.into(),
            model: id.into(),
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

/// What git has of these files and folders: their checksums.
fn objects(tree: &Tree, paths: &[&str]) -> Result<String> {
    git(tree, &[&["ls-tree", "HEAD", "--"], paths].concat())
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text);
    let digits = digest[..BYTES].iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
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
