//! Control groups for the processes under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::unistd::Pid;

use crate::clock::{wait_until, PATIENCE};
use crate::skip::Skip;

const ROOT: &str = "/sys/fs/cgroup";

/// Enables the CPU controller (cpu.weight, cpu.max) for groups below the root.
///
/// # Errors
///
/// The kernel has no such controller.
pub fn enable_cpu_controller() -> Result<()> {
    let file = Path::new(ROOT).join("cgroup.subtree_control");
    fs::write(file, "+cpu").context("cannot enable the CPU controller")
}

/// Enables the memory controller for groups below the root.
///
/// # Errors
///
/// [`Skip`]: the kernel has no such controller.
pub fn enable_memory_controller() -> Result<()> {
    let file = Path::new(ROOT).join("cgroup.subtree_control");
    fs::write(file, "+memory").map_err(|_| Skip("the kernel has no controller for memory").into())
}

/// Enables the cpuset controller for groups below the root.
///
/// # Errors
///
/// [`Skip`]: the kernel has no such controller.
pub fn enable_cpuset_controller() -> Result<()> {
    let file = Path::new(ROOT).join("cgroup.subtree_control");
    fs::write(file, "+cpuset").map_err(|_| Skip("the kernel has no controller for cpusets").into())
}

/// A control group. Dropping it removes it and the groups below it, and moves their processes to
/// the root.
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group at `path` below the root, and missing groups above it.
    ///
    /// # Errors
    ///
    /// There is no cgroup v2.
    pub fn new(path: &str) -> Result<Self> {
        let path = Path::new(ROOT).join(path);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path })
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn take(&self, pid: Pid) -> Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }

    /// Opens the group's folder.
    ///
    /// # Errors
    ///
    /// The group is gone.
    pub fn open(&self) -> Result<fs::File> {
        fs::File::open(&self.path).with_context(|| format!("cannot open {}", self.path.display()))
    }

    /// Opens one of the group's files for writing.
    ///
    /// # Errors
    ///
    /// There is no such file.
    pub fn open_file(&self, file: &str) -> Result<fs::File> {
        let file = self.path.join(file);
        let opened = fs::File::options().write(true).open(&file);
        opened.with_context(|| format!("cannot open {}", file.display()))
    }

    /// Writes one of the group's files.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn set(&self, file: &str, value: &str) -> Result<()> {
        let file = self.path.join(file);
        fs::write(&file, value).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Returns the number in one of the group's files.
    ///
    /// # Errors
    ///
    /// There is no such file, or no number in it.
    pub fn number(&self, file: &str) -> Result<u64> {
        let file = self.path.join(file);
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let number = text.trim().parse();
        number.with_context(|| format!("{}: {text}", file.display()))
    }

    /// Returns the CPU time used in the group and below.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn cpu_time(&self) -> Result<Duration> {
        let file = self.path.join("cpu.stat");
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        let us: u64 = line.context("cpu.stat has no usage_usec")?.parse()?;
        Ok(Duration::from_micros(us))
    }

    /// Returns whether the group itself has no process.
    pub fn is_empty(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty())
    }

    /// Returns whether the group or a group below it has a process.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn is_populated(&self) -> Result<bool> {
        let file = self.path.join("cgroup.events");
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(text.lines().any(|line| line == "populated 1"))
    }

    /// Removes the group, which must be empty.
    ///
    /// # Errors
    ///
    /// It is not empty.
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
