//! Control groups for the processes under test.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use nix::unistd::Pid;

use crate::clock::wait_until;
use crate::process::PATIENCE;

const ROOT: &str = "/sys/fs/cgroup";

/// A control group. Dropping it removes it, and those below it; what runs in it
/// goes to the root.
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group at `path` below the root, and those above it.
    ///
    /// # Errors
    ///
    /// There is no cgroup v2.
    pub fn new(path: &str) -> Result<Self> {
        let path = Path::new(ROOT).join(path);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path })
    }

    /// Moves a process into it.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn take(&self, pid: Pid) -> Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }

    /// Writes one of its files.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn set(&self, file: &str, value: &str) -> Result<()> {
        let file = self.path.join(file);
        fs::write(&file, value).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes it, which must be empty.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn remove(&self) -> Result<()> {
        let gone = wait_until(PATIENCE, || fs::remove_dir(&self.path).is_ok());
        ensure!(gone, "cannot remove {}", self.path.display());
        Ok(())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        empty_and_remove(&self.path);
    }
}

fn empty_and_remove(path: &Path) {
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.path().is_dir()) {
        empty_and_remove(&entry.path());
    }
    let inside = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    for pid in inside.lines() {
        let _ = fs::write(Path::new(ROOT).join("cgroup.procs"), pid);
    }
    let _ = fs::remove_dir(path);
}
