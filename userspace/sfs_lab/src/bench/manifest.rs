//! What results were made from: so that a run that was interrupted can go on, and results
//! of different settings never stand in one table.
//!
//! A manifest is a text of lines, each a word and what it stands for.

use super::rows::{files, Server};
use super::settings::{Row, Settings};
use anyhow::{Context, Result};
use sfs_jobs::failure::{refuse, Failure};
use sfs_jobs::job;
use sfs_jobs::tree::Tree;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files that the VM of live rows is made from.
const MACHINE: [&str; 5] = ["run", "init", "build-initrd", "lib.sh", "qemu.sh"];

/// The part that all rows share: the trace and the number of CPUs.
///
/// # Errors
/// If the trace cannot be read.
pub fn common(tree: &Tree, trace: &Path, cpus: u32) -> Result<String> {
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let sum = digest(tree, [trace])?;
    Ok(format!("trace {name} {sum}\ncpus {cpus}\n"))
}

/// The machines of the live rows: one for each kernel.
#[derive(Debug, Default)]
pub struct Machines(BTreeMap<Option<String>, String>);

impl Machines {
    /// Looks at each once, and fetches what is missing of them. `servers` says what serves
    /// each row.
    ///
    /// # Errors
    /// If something cannot be fetched or read.
    pub fn find(tree: &Tree, settings: &Settings, servers: &[Server]) -> Result<Self> {
        let mut machines = BTreeMap::new();
        for (row, server) in settings.rows.iter().zip(servers) {
            let kernel = kernel(settings, row)?;
            if !server.is_simulated() && !machines.contains_key(&kernel) {
                let machine = machine(tree, settings, kernel.as_deref())?;
                machines.insert(kernel, machine);
            }
        }
        Ok(Self(machines))
    }

    /// The part of the manifest for the machine of a row; empty for a simulated one.
    ///
    /// # Errors
    /// As of [`kernel`].
    pub fn of(&self, settings: &Settings, row: &Row) -> Result<&str> {
        let machine = self.0.get(&kernel(settings, row)?);
        Ok(machine.map_or("", String::as_str))
    }
}

/// The kernel that a row's VM boots: its own, or that of all; `None` for the default.
///
/// # Errors
/// One sentence if the row's settings cannot be read.
pub fn kernel(settings: &Settings, row: &Row) -> Result<Option<String>> {
    match row.kernel() {
        Ok(own) => Ok(own.or_else(|| settings.kernel.clone())),
        Err(error) => refuse!("{error}"),
    }
}

/// The kernel, the machine and the benchmark of live rows.
fn machine(tree: &Tree, settings: &Settings, kernel: Option<&str>) -> Result<String> {
    let faasbench = tree.program("faasbench");
    let waste = tree.program("sfs_waste");
    let number = match settings.machine() {
        0 => String::new(),
        other => format!(" {other}"),
    };
    Ok(format!(
        "kernel {}\naccel {}\nsandbox {} {}\nbenchmark {}\nmachine {}{number}\n",
        digest(tree, [image(tree, kernel)?])?,
        settings.accel.name(),
        settings.sandbox.name(),
        settings.sandbox_args,
        digest(tree, [faasbench, waste])?,
        digest(tree, MACHINE.map(|name| Path::new("vm").join(name)))?,
    ))
}

/// The kernel's image, fetched if need be.
fn image(tree: &Tree, kernel: Option<&str>) -> Result<PathBuf> {
    match kernel {
        Some(file) if tree.at(file).is_file() => return Ok(file.into()),
        Some(_) => {}
        None => {
            // Before the rows, so that they do not all do it.
            let mut fetch = job::call(tree, "vm/fetch");
            succeeded(
                "vm/fetch",
                fetch.stdout(std::process::Stdio::null()).status(),
            )?;
        }
    }
    let mut fetch = job::call(tree, "vm/fetch-kernel");
    let output = fetch
        .args(kernel)
        .stderr(std::process::Stdio::inherit())
        .output();
    let output = output.context("cannot run vm/fetch-kernel")?;
    succeeded("vm/fetch-kernel", Ok(output.status))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(Path::new(folder.trim_end()).join("vmlinuz"))
}

/// It has said itself what went wrong. Whatever it was, there is no machine to measure on.
fn succeeded(name: &str, status: std::io::Result<std::process::ExitStatus>) -> Result<()> {
    let status = status.with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        return Err(Failure::Usage(format!(
            "there is no machine to measure on: {name} failed ({status})"
        ))
        .into());
    }
    Ok(())
}

/// The part that belongs to one row. `machine` is what [`Machines::of`]
/// returned.
///
/// # Errors
/// If a file cannot be read.
pub fn row(tree: &Tree, row: &Row, server: &Server, machine: &str) -> Result<String> {
    let mut text = String::new();
    let program = match server {
        Server::Simulation(_) => {
            let sum = digest(tree, [tree.program("faasbench")])?;
            text += &format!("benchmark {sum}\n");
            Some(tree.program("sfs_sim"))
        }
        Server::Kernel => {
            text += machine;
            None
        }
        Server::Program(path) => {
            text += machine;
            Some(path.clone())
        }
    };
    let program = program.map(|path| digest(tree, [path])).transpose()?;
    text += &format!("program {}\n", program.unwrap_or_default());
    for (host, guest) in files(row) {
        text += &format!("files {guest} {}\n", digest(tree, [host])?);
    }
    text += &format!("options {}\n", row.args());
    Ok(text)
}

/// One SHA-256 for all of these files.
fn digest(tree: &Tree, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<String> {
    let mut sum = Sha256::new();
    for file in files {
        let path = tree.at(file);
        let mut input = std::fs::File::open(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        std::io::copy(&mut input, &mut Sink(&mut sum))
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Whatever is written to it goes into the checksum.
struct Sink<'a>(&'a mut Sha256);

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The words before what differs, as `cpus, trace`.
///
/// # Example
///
/// ```
/// let (old, new) = ("trace a 1\ncpus 4\n", "trace b 2\ncpus 4\n");
/// assert_eq!(sfs_lab::bench::manifest::changed(old, new), "trace");
/// ```
pub fn changed(old: &str, new: &str) -> String {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (old.lines().collect(), new.lines().collect());
    let differ = before.symmetric_difference(&after);
    let words: BTreeSet<&str> = differ.filter_map(|line| line.split(' ').next()).collect();
    words.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_files_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::new(folder.path(), None);
        std::fs::write(tree.at("a"), "ab").unwrap();
        std::fs::write(tree.at("b"), "c").unwrap();
        // That of "abc", by FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&tree, ["a", "b"]).unwrap(), abc);
        let said = digest(&tree, ["none"]).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot read ") && said.ends_with("/none"),
            "{said}"
        );
    }

    #[test]
    fn each_word_that_changed_is_named_once() {
        let old = "program 1\nfiles /a 1\nfiles /b 1\noptions \n";
        let new = "program 1\nfiles /a 2\nfiles /b 2\noptions -v\n";
        assert_eq!(changed(old, new), "files, options");
        assert_eq!(changed(old, old), "");
    }
}
