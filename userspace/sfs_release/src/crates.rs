//! The crates that programs are linked with, as cargo lists them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};

/// A crate, in the order of name and version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The licence by its manifest; empty if that says nothing.
    pub licence: String,
    /// It is in a folder of this machine, so it is a crate of this workspace.
    pub is_own: bool,
}

impl Crate {
    /// Reads a line of `cargo tree --format '{p}|{l}'`.
    fn parse(line: &str) -> Option<Self> {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        Some(Self {
            name: words.next()?.to_owned(),
            version: words.next()?.strip_prefix('v')?.to_owned(),
            licence: licence.to_owned(),
            is_own: words.any(|word| word.starts_with("(/")),
        })
    }
}

/// Returns `programs` and all crates that are linked into them.
///
/// # Errors
///
/// cargo cannot be run, fails, or lists no crates.
pub fn of(workspace: &Path, programs: &[&str]) -> Result<BTreeSet<Crate>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).args(["tree", "--locked"]);
    for program in programs {
        command.args(["--package", program]);
    }
    command.args([
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        "{p}|{l}",
    ]);
    let output = command.output().context("cannot run cargo")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cargo tree failed: {}",
        complaint.trim()
    );
    let text = String::from_utf8(output.stdout).context("cargo tree does not print UTF-8")?;
    let crates: BTreeSet<_> = text.lines().filter_map(Crate::parse).collect();
    ensure!(!crates.is_empty(), "cargo tree lists no crates");
    Ok(crates)
}

/// Returns the SHA-256 of each crate of a registry, by name and version, from `Cargo.lock`.
///
/// # Errors
///
/// The file cannot be read.
pub fn checksums(workspace: &Path) -> Result<HashMap<(String, String), String>> {
    let path = workspace.join("Cargo.lock");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut name, mut version, mut sums) = (String::new(), String::new(), HashMap::new());
    for line in text.lines() {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        let value = value.trim_matches('"').to_owned();
        match key {
            "name" => name = value,
            "version" => version = value,
            "checksum" => drop(sums.insert((name.clone(), version.clone()), value)),
            _ => {}
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_is_read() {
        let read = |line| Crate::parse(line).unwrap();
        let own = read("sfs_text v0.1.0 (/home/me/sfs_text)|GPL-2.0-only");
        assert!(own.is_own && own.name == "sfs_text" && own.version == "0.1.0");
        let other = read("paste v1.0.15 (proc-macro)|MIT OR Apache-2.0");
        assert!(!other.is_own && other.licence == "MIT OR Apache-2.0");
        assert_eq!(read("bare v1.0.0|").licence, "");
        assert_eq!(Crate::parse("not a crate"), None);
    }
}
