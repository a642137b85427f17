//! A cgroup (version 2) per sandbox, with a weight and optionally a quota of
//! CPU time: `ROOT/faasbench/FUNCTION-NUMBER`, or
//! `ROOT/faasbench/FUNCTION/NUMBER`.

use crate::clock::{monotonic_ns, sleep_until};
use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a replay below the root of the hierarchy.
const BASE: &str = "faasbench";

/// Period of a quota in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// Maximum time of a removal: killed processes take a moment to disappear.
const REMOVAL_NS: u64 = 10_000_000_000;
const PAUSE_NS: u64 = 5_000_000;

/// The limits of each sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `cpu.weight`: 1 to 10000, usually 100.
    pub weight: u32,
    /// CPU limit in per cent of one CPU; `None`: no limit.
    pub quota_percent: Option<u32>,
    /// The layout of the cgroups.
    pub layout: Layout,
}

impl Limits {
    /// The content of `cpu.max`.
    fn max(self) -> Option<String> {
        let percent = self.quota_percent?;
        Some(format!(
            "{} {PERIOD_US}",
            u64::from(percent) * PERIOD_US / 100
        ))
    }
}

/// The layout of the sandboxes' cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// All in one folder, as in container engines and Kubernetes: a fair
    /// scheduler shares the CPUs between sandboxes.
    Flat,
    /// The sandboxes of each function in a cgroup of that function: a fair
    /// scheduler first shares the CPUs between functions, which favours
    /// functions with few concurrent requests.
    Nested,
}

/// The cgroups of one replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cgroups {
    base: PathBuf,
    limits: Limits,
    /// The folders of the functions, by number.
    folders: Vec<String>,
    /// The root, if the CPU controller was off below it and must be switched
    /// off again.
    switched_on_at: Option<PathBuf>,
}

impl Cgroups {
    /// Creates the folders of the replay and, if nested, of its functions.
    ///
    /// # Errors
    /// If there is no hierarchy of version 2, it has no CPU controller, or it
    /// cannot be written. Then no folder is left behind.
    pub fn set_up(functions: &[String], limits: Limits) -> Result<Self> {
        let root = root()?;
        let mut new = Self {
            base: root.join(BASE),
            limits,
            folders: folder_names(functions),
            switched_on_at: None,
        };
        new.check_unused()?;
        if let Err(error) = new.make(&root) {
            let _ = new.remove();
            return Err(error);
        }
        Ok(new)
    }

    /// Removes the remains of an earlier replay; a replay in progress is an error.
    fn check_unused(&self) -> Result<()> {
        let events = fs::read_to_string(self.base.join("cgroup.events")).unwrap_or_default();
        if events.lines().any(|line| line == "populated 1") {
            bail!(
                "the cgroup {} has processes in it: is another replay running?",
                self.base.display()
            );
        }
        self.remove()
    }

    fn make(&mut self, root: &Path) -> Result<()> {
        if !has_cpu(&root.join("cgroup.subtree_control")) {
            switch(root, "+cpu")?;
            self.switched_on_at = Some(root.to_path_buf());
        }
        make_with_cpu(&self.base)?;
        if self.limits.layout == Layout::Nested {
            for folder in &self.folders {
                make_with_cpu(&self.base.join(folder))?;
            }
        }
        Ok(())
    }

    /// Creates the cgroup of a sandbox and opens its folder.
    ///
    /// # Errors
    /// If it cannot be created or limited.
    pub fn sandbox(&self, function: u32, number: u32) -> Result<File, Errno> {
        let folder = self.folders.get(function as usize).ok_or(Errno::EINVAL)?;
        let path = self.base.join(match self.limits.layout {
            Layout::Flat => format!("{folder}-{number}"),
            Layout::Nested => format!("{folder}/{number}"),
        });
        let made = || -> io::Result<File> {
            fs::create_dir(&path)?;
            fs::write(path.join("cpu.weight"), self.limits.weight.to_string())?;
            if let Some(max) = self.limits.max() {
                fs::write(path.join("cpu.max"), max)?;
            }
            File::open(&path)
        };
        made().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Kills the processes in these cgroups and removes them. Missing cgroups
    /// are not an error.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn remove(&self) -> Result<()> {
        if self.base.exists() {
            // Kernels before 5.14 lack this file; then nothing may run in them.
            let _ = fs::write(self.base.join("cgroup.kill"), "1");
            let cannot = || format!("cannot remove the cgroup {}", self.base.display());
            remove_tree(&self.base).with_context(cannot)?;
        }
        if let Some(root) = &self.switched_on_at {
            // Others may use it by now.
            let _ = switch(root, "-cpu");
        }
        Ok(())
    }
}

/// The root of this machine's hierarchy of version 2.
///
/// # Errors
/// If there is none, or it has no CPU controller.
pub fn root() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let root = find_root(&mounts).context(
        "--sandbox cgroup needs cgroups of version 2, and no such hierarchy is mounted; \
         `mount -t cgroup2 cgroup2 /sys/fs/cgroup` where the machine uses no other",
    )?;
    if !has_cpu(&root.join("cgroup.controllers")) {
        bail!(
            "--sandbox cgroup needs the CPU controller, which {} does not have: \
             it is off, or used by cgroups of version 1",
            root.display()
        );
    }
    Ok(root)
}

/// Where the hierarchy of version 2 is mounted, by `/proc/self/mountinfo`.
fn find_root(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let version_2 = tail.split(' ').next() == Some("cgroup2");
        let place = head.split(' ').nth(4)?;
        version_2.then(|| PathBuf::from(place))
    })
}

fn has_cpu(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().any(|name| name == "cpu")
}

fn make_with_cpu(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("cannot create the cgroup {}", path.display()))?;
    switch(path, "+cpu")
}

fn switch(path: &Path, what: &str) -> Result<()> {
    let file = path.join("cgroup.subtree_control");
    fs::write(&file, what).with_context(|| format!("cannot write {what} to {}", file.display()))
}

/// Removes `path` with its subfolders, once their processes are gone.
fn remove_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    let deadline_ns = monotonic_ns() + REMOVAL_NS;
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && monotonic_ns() < deadline_ns =>
            {
                sleep_until(monotonic_ns() + PAUSE_NS);
            }
            other => return other,
        }
    }
}

/// A folder name for each function: its own, unless it is not a valid name or
/// could be a file of the kernel, which all have a dot.
fn folder_names(functions: &[String]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let plain = |c: char| if c == '/' || c == '.' { '_' } else { c };
    let mut name = |function: &String| {
        let mut name: String = function.chars().map(plain).collect();
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        name
    };
    functions.iter().map(&mut name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_by_its_type() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                      30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 1 0:27 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(find_root(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(find_root("30 1 0:26 / /x rw - cgroup cgroup rw\n"), None);
    }

    #[test]
    fn functions_get_folders_of_their_own() {
        let functions = ["fib27", "a/b", "a.b", "cpu.max", "a_b"].map(String::from);
        let want = ["fib27", "a_b", "a_b_", "cpu_max", "a_b__"];
        assert_eq!(folder_names(&functions), want);
    }

    #[test]
    fn a_quota_is_a_share_of_the_period() {
        let max = |quota_percent| {
            let limits = Limits {
                weight: 100,
                quota_percent,
                layout: Layout::Flat,
            };
            limits.max()
        };
        assert_eq!(max(None), None);
        assert_eq!(max(Some(50)).as_deref(), Some("50000 100000"));
        assert_eq!(max(Some(250)).as_deref(), Some("250000 100000"));
    }
}
