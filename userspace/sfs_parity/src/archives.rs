//! The archives of other people's programs, which vm/debian-root makes of Debian's packages.

use anyhow::{ensure, Context, Result};
use sfs_jobs::failure::Failure;
use sfs_jobs::job;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages of the stressors' archive, and the files that it keeps.
const STRESS: [&str; 6] = [
    "stress-ng",
    "stress-ng",
    "rt-tests",
    "--",
    "usr/bin/stress-ng",
    "usr/bin/hackbench",
];

/// Packages of the servers' archive, and the files that it keeps. PostgreSQL's own
/// compiler, which is switched off, would bring LLVM.
const SERVERS: [&str; 25] = [
    "servers",
    "nginx",
    "wrk",
    "redis-server",
    "postgresql",
    "linux-perf",
    "tcc",
    "newlib-source",
    "util-linux",
    "--",
    "usr/sbin/nginx",
    "usr/bin/wrk",
    "usr/bin/redis-server",
    "usr/bin/redis-check-rdb",
    "usr/bin/redis-cli",
    "usr/bin/redis-benchmark",
    "usr/lib/postgresql/*/bin",
    "usr/lib/postgresql/*/lib/[!l]*.so",
    "usr/share/postgresql",
    "usr/share/zoneinfo/UTC",
    "usr/bin/perf",
    "usr/bin/setpriv",
    "usr/bin/tcc",
    "usr/lib/x86_64-linux-gnu/tcc",
    "usr/src/newlib",
];

/// The archives that guests unpack.
#[derive(Debug)]
pub struct Archives {
    pub stress: PathBuf,
    pub servers: PathBuf,
}

impl Archives {
    /// Makes them, or finds them in the cache.
    pub fn make(tree: &Tree, interrupt: &Interrupt) -> Result<Self> {
        Ok(Self {
            stress: archive(tree, interrupt, &STRESS)?,
            servers: archive(tree, interrupt, &SERVERS)?,
        })
    }
}

/// Makes an archive with vm/debian-root, and returns its path.
fn archive(tree: &Tree, interrupt: &Interrupt, arguments: &[&str]) -> Result<PathBuf> {
    let mut command = job::call(tree, "vm/debian-root");
    let output = command.args(arguments).stderr(Stdio::inherit()).output();
    interrupt.check()?;
    let output = output.context("cannot run vm/debian-root")?;
    let code = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    match code {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        _ => Err(Failure::Program("vm/debian-root".into(), code.unwrap_or(1)).into()),
    }
}

/// The stressors that stress-ng itself lists; it runs with the libraries of its
/// archive.
pub fn stressors(tree: &Tree, interrupt: &Interrupt) -> Result<Vec<String>> {
    let archive = archive(tree, interrupt, &STRESS)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut unpack = Command::new("tar");
    unpack
        .args(["-x", "-f"])
        .arg(tree.at(&archive))
        .arg("-C")
        .arg(folder.path());
    let status = job::run(&mut unpack)?;
    ensure!(status == 0, "cannot unpack {}", archive.display());
    let loader = find(folder.path(), "ld-linux-x86-64.so.2")?;
    let loader = loader
        .with_context(|| format!("there is no ld-linux-x86-64.so.2 in {}", archive.display()))?;
    let output = Command::new(loader)
        .arg("--library-path")
        .arg(folder.path().join("usr/lib/x86_64-linux-gnu"))
        .arg(folder.path().join("usr/bin/stress-ng"))
        .arg("--stressors")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run stress-ng")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = text.split_whitespace().map(String::from).collect();
    ensure!(
        output.status.success() && !names.is_empty(),
        "stress-ng --stressors of {} lists nothing",
        archive.display()
    );
    Ok(names)
}

/// The file of this name in a folder or below it, without following links.
fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let entries = std::fs::read_dir(folder);
    for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let kind = entry.file_type().context("cannot tell what a file is")?;
        if kind.is_file() && entry.file_name() == name {
            return Ok(Some(entry.path()));
        }
        if kind.is_dir() {
            if let Some(found) = find(&entry.path(), name)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}
