//! Quotas of cgroups (`cpu.max`) that would not be enforced: on a kernel that
//! does not report them to a scheduler, and in a group for which the kernel
//! half has no room. In these cases scx_sfs does not schedule, since the
//! kernel's own scheduler enforces them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, Result};

use crate::{folders_in, CGROUP_ROOT};

/// Interval between checks for quotas on kernels that do not report them. A new quota is not
/// enforced for this long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Checks for quotas that are not enforced.
#[derive(Debug)]
pub struct QuotaWatch {
    /// Version of the running kernel, for the message.
    kernel: String,
    looked_at: Instant,
}

impl QuotaWatch {
    /// Checks for the first time. Needed only on a kernel that does not report quotas;
    /// `kernel`: its version.
    ///
    /// # Errors
    ///
    /// A group has a quota.
    pub fn start(kernel: String) -> Result<Self> {
        let mut watch = Self {
            kernel,
            looked_at: Instant::now(),
        };
        watch.look()?;
        Ok(watch)
    }

    /// Returns the time until the next check.
    pub fn left(&self) -> Duration {
        LOOK_EVERY.saturating_sub(self.looked_at.elapsed())
    }

    /// Checks if it is due.
    ///
    /// # Errors
    ///
    /// A group has a quota.
    pub fn look_if_due(&mut self) -> Result<()> {
        if self.left().is_zero() {
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        let limited = first_with_quota(Path::new(CGROUP_ROOT));
        self.looked_at = Instant::now();
        if let Some(group) = limited {
            bail!(
                "the cgroup {} has a quota (cpu.max), which scx_sfs cannot enforce on this \
                 kernel ({}): boot one of version 6.17 or later, or remove the quota; with \
                 --ignore-quotas the cgroup may use the whole machine",
                group.escape_debug(),
                self.kernel
            );
        }
        Ok(())
    }
}

/// Checks that there are at most `most` cgroups, so that all have room.
///
/// # Errors
///
/// There are more.
pub fn check_room(most: u32) -> Result<()> {
    // The root needs a place, too.
    let groups = 1 + groups_below(Path::new(CGROUP_ROOT))
        .filter(|group| {
            ["cpu.weight", "cpu.shares"]
                .iter()
                .any(|file| group.join(file).exists())
        })
        .count();
    if groups > most as usize {
        bail!(
            "there are {groups} cgroups with a weight and a quota, but room for {most} only: \
             increase --max-cgroups"
        );
    }
    Ok(())
}

/// Returns the path of a cgroup with a quota, relative to the hierarchy at `root`.
pub fn first_with_quota(root: &Path) -> Option<String> {
    let group = groups_below(root).find(|group| has_quota(group))?;
    let below = group.strip_prefix(root).unwrap_or(&group);
    Some(below.to_string_lossy().into_owned())
}

/// Returns whether the cgroup at `path` has a quota, in the file of cgroup v2 or v1.
fn has_quota(path: &Path) -> bool {
    // A group may vanish at any time; then it has no quota.
    let limit = |file, none| {
        fs::read_to_string(path.join(file)).is_ok_and(|text| !text.trim_start().starts_with(none))
    };
    limit("cpu.max", "max") || limit("cpu.cfs_quota_us", "-1")
}

/// Returns all cgroups below `root`. Groups that cannot be read have vanished.
fn groups_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let mut left: Vec<_> = children_of(root).collect();
    std::iter::from_fn(move || {
        let next = left.pop()?;
        left.extend(children_of(&next));
        Some(next)
    })
}

/// Returns the folders in `path`, except symbolic links.
fn children_of(path: &Path) -> impl Iterator<Item = PathBuf> + use<'_> {
    folders_in(path).into_iter().map(|name| path.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a tree of cgroups with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn finds_a_quota_at_any_depth() {
        let root = tree(&[
            ("a/cpu.max", "max 100000\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/c/d/cpu.max", "50000 100000\n"),
        ]);
        assert_eq!(first_with_quota(root.path()).as_deref(), Some("a/b/c/d"));
    }

    #[test]
    fn finds_a_quota_of_cgroup_v1() {
        let root = tree(&[
            ("cpu/a/cpu.cfs_quota_us", "-1\n"),
            ("cpu/b/cpu.cfs_quota_us", "5000\n"),
        ]);
        assert_eq!(first_with_quota(root.path()).as_deref(), Some("cpu/b"));
    }

    #[test]
    fn finds_no_quota_in_a_tree_without_quotas() {
        let root = tree(&[("a/cpu.max", "max 100000\n"), ("b/cpu.stat", "0\n")]);
        assert_eq!(first_with_quota(root.path()), None);
        assert_eq!(first_with_quota(&root.path().join("gone")), None);
    }

    #[test]
    fn follows_no_link() {
        let root = tree(&[("a/cpu.max", "max 100000\n")]);
        std::os::unix::fs::symlink(root.path(), root.path().join("a/up")).unwrap();
        assert_eq!(groups_below(root.path()).count(), 1);
    }
}
