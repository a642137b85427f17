//! Quotas of cgroups (`cpu.max`) where nobody would keep them: on a kernel that tells a
//! scheduler of none, and in a group for which the kernel half has no room. There scx_sfs
//! does not schedule, since the kernel's own scheduler would keep them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use scx_utils::compat;

use crate::cgroups::{folders_in, CGROUP_ROOT};
use crate::preflight::kernel_release;

/// How often to look for quotas where the kernel does not tell of them. A new one is not
/// kept for so long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Returns whether the kernel tells a scheduler of quotas (6.17 and later do).
///
/// # Errors
///
/// The kernel's type information cannot be read.
pub fn kernel_tells() -> Result<bool> {
    compat::struct_has_field("sched_ext_ops", "cgroup_set_bandwidth")
}

/// Looks for quotas that nobody keeps.
#[derive(Debug)]
pub struct QuotaWatch {
    looked_at: Instant,
}

impl QuotaWatch {
    /// Looks for the first time. `None`: there is no need to, since the kernel tells of
    /// quotas, or since the operator does not want them to be kept (`are_ignored`).
    ///
    /// # Errors
    ///
    /// A group has a quota.
    pub fn start(are_ignored: bool) -> Result<Option<Self>> {
        if are_ignored || kernel_tells()? {
            return Ok(None);
        }
        let mut watch = Self {
            looked_at: Instant::now(),
        };
        watch.look()?;
        Ok(Some(watch))
    }

    /// Returns how long until it is time to look again.
    pub fn left(&self) -> Duration {
        LOOK_EVERY.saturating_sub(self.looked_at.elapsed())
    }

    /// Looks, if it is time.
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
                "the cgroup {} has a quota (cpu.max), which scx_sfs cannot keep on this kernel \
                 ({}): boot one of version 6.17 or later, or take the quota away; with \
                 --ignore-quotas it may use the whole machine",
                group.escape_debug(),
                kernel_release()
            );
        }
        Ok(())
    }
}

/// Checks that there is room for all cgroups that there are: at most `most`.
///
/// # Errors
///
/// There are more.
pub fn check_room(most: u32) -> Result<()> {
    // The root has a place, too.
    let groups = 1 + groups_below(Path::new(CGROUP_ROOT))
        .filter(|group| {
            ["cpu.weight", "cpu.shares"]
                .iter()
                .any(|file| group.join(file).exists())
        })
        .count();
    if groups > most as usize {
        bail!(
            "there are {groups} cgroups with a weight and a quota, and room for {most}: give \
             --max-cgroups a larger number"
        );
    }
    Ok(())
}

/// Returns the path, below `root`, of a cgroup that has a quota.
fn first_with_quota(root: &Path) -> Option<String> {
    let group = groups_below(root).find(|group| has_quota(group))?;
    let below = group.strip_prefix(root).unwrap_or(&group);
    Some(below.to_string_lossy().into_owned())
}

/// Returns whether the cgroup at `path` has a quota: by the file of cgroup v2, or that of v1.
fn has_quota(path: &Path) -> bool {
    // A group may go at any time; then it has none.
    let limit = |file, none| {
        fs::read_to_string(path.join(file)).is_ok_and(|text| !text.trim_start().starts_with(none))
    };
    limit("cpu.max", "max") || limit("cpu.cfs_quota_us", "-1")
}

/// Returns all cgroups below `root`. What cannot be read has gone.
fn groups_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let mut left: Vec<_> = children_of(root).collect();
    std::iter::from_fn(move || {
        let next = left.pop()?;
        left.extend(children_of(&next));
        Some(next)
    })
}

/// Returns the folders in `path`, without those that links lead to.
fn children_of(path: &Path) -> impl Iterator<Item = PathBuf> + use<'_> {
    folders_in(path).into_iter().map(|name| path.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of cgroups that holds these files.
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
    fn finds_none_where_there_is_none() {
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
