//! Settings of the kernel's own scheduler, in debugfs.

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The folder of the scheduler's settings.
pub const FOLDER: &str = "/sys/kernel/debug/sched";

/// File of the base slice of EEVDF, in ns.
const BASE_SLICE: &str = "base_slice_ns";

/// File of the preemption mode: all that there are, with that in force in parentheses.
const PREEMPT: &str = "preempt";

/// A preemption mode of a kernel with `CONFIG_PREEMPT_DYNAMIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Kernel code is not preempted.
    None,
    /// Only where it offers to be.
    Voluntary,
    /// Everywhere.
    Full,
    /// Everywhere, but for the sake of an ordinary task only at the next tick.
    Lazy,
}

impl Preemption {
    const ALL: [Self; 4] = [Self::None, Self::Voluntary, Self::Full, Self::Lazy];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
        }
    }

    /// The one with this name.
    ///
    /// # Errors
    /// One sentence if there is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| format!("preempt is '{name}'; want none, voluntary, full or lazy"))
    }
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Settings to write; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// The base slice, in ns.
    pub base_slice_ns: Option<u64>,
    /// The preemption mode.
    pub preemption: Option<Preemption>,
}

impl Tuning {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each file to write, with its content.
    fn files(&self) -> Vec<(&'static str, String)> {
        let slice = self.base_slice_ns.map(|ns| (BASE_SLICE, ns.to_string()));
        let preemption = self.preemption.map(|mode| (PREEMPT, mode.to_string()));
        slice.into_iter().chain(preemption).collect()
    }
}

/// What a setting's file says is in force: of the preemption modes, that in parentheses.
///
/// # Errors
/// If the file cannot be read.
fn in_force(folder: &Path, name: &str) -> Result<String> {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}: is debugfs mounted, and has this kernel the setting?",
            path.display()
        )
    })?;
    let marked = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    let value = marked.map_or(text.as_str(), |(value, _)| value);
    Ok(value.trim().to_string())
}

/// A number in ns that a file of [`FOLDER`] has, if the kernel has the file.
pub fn number_in_force(folder: &Path, name: &str) -> Option<u64> {
    in_force(folder, name).ok()?.parse().ok()
}

/// The preemption mode in force, if the kernel can change it.
pub fn preemption_in_force(folder: &Path) -> Option<String> {
    in_force(folder, PREEMPT).ok()
}

/// The base slice in force, in ns, if the kernel has EEVDF.
pub fn base_slice_in_force(folder: &Path) -> Option<u64> {
    number_in_force(folder, BASE_SLICE)
}

/// Settings that are changed until this is dropped or [`restored`](Self::restore).
#[derive(Debug)]
pub struct Changed {
    folder: PathBuf,
    /// What the files had before, in the order in which they were written.
    before: Vec<(&'static str, String)>,
}

impl Changed {
    /// Writes `tuning` into the files of `folder`, and reads each back.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the kernel has made something else of a value.
    /// What was written is put back then.
    pub fn apply(folder: &Path, tuning: &Tuning) -> Result<Self> {
        let mut changed = Self {
            folder: folder.to_path_buf(),
            before: Vec::new(),
        };
        for (name, value) in tuning.files() {
            changed.before.push((name, in_force(folder, name)?));
            write(folder, name, &value)?;
        }
        Ok(changed)
    }

    /// Puts back what was there.
    ///
    /// # Errors
    /// If a file cannot be written; the others are nevertheless.
    pub fn restore(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        while let Some((name, value)) = self.before.pop() {
            let written = write(&self.folder, name, &value);
            outcome = outcome.and(written);
        }
        outcome
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // After an error that is told already.
        let _ = self.put_back();
    }
}

fn write(folder: &Path, name: &str, value: &str) -> Result<()> {
    let path = folder.join(name);
    let cannot = || format!("cannot set {} to {value}", path.display());
    std::fs::write(&path, value).with_context(cannot)?;
    let now = in_force(folder, name)?;
    if now != value {
        bail!("{} is {now} after {value} was written", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(slice: &str, preempt: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(BASE_SLICE), slice).unwrap();
        std::fs::write(folder.path().join(PREEMPT), preempt).unwrap();
        folder
    }

    fn slice(ns: u64) -> Tuning {
        Tuning {
            base_slice_ns: Some(ns),
            ..Tuning::default()
        }
    }

    #[test]
    fn the_mode_in_parentheses_is_in_force() {
        let folder = folder("2800000\n", "none voluntary full (lazy)\n");
        assert_eq!(preemption_in_force(folder.path()).as_deref(), Some("lazy"));
        assert_eq!(base_slice_in_force(folder.path()), Some(2_800_000));
        assert_eq!(number_in_force(folder.path(), "latency_ns"), None);
    }

    #[test]
    fn what_was_there_comes_back() {
        let folder = folder("2800000\n", "none (full)\n");
        let tuning = Tuning {
            base_slice_ns: Some(3_000_000),
            preemption: Some(Preemption::None),
        };
        let changed = Changed::apply(folder.path(), &tuning).unwrap();
        assert_eq!(base_slice_in_force(folder.path()), Some(3_000_000));
        assert_eq!(preemption_in_force(folder.path()).as_deref(), Some("none"));
        changed.restore().unwrap();
        assert_eq!(base_slice_in_force(folder.path()), Some(2_800_000));
        assert_eq!(preemption_in_force(folder.path()).as_deref(), Some("full"));
        drop(Changed::apply(folder.path(), &slice(1_000_000)).unwrap());
        assert_eq!(base_slice_in_force(folder.path()), Some(2_800_000));
    }

    #[test]
    fn a_kernel_without_the_setting_is_left_as_it_is() {
        let folder = folder("2800000\n", "(full)\n");
        std::fs::remove_file(folder.path().join(PREEMPT)).unwrap();
        let tuning = Tuning {
            preemption: Some(Preemption::Lazy),
            ..slice(1_000_000)
        };
        let error = Changed::apply(folder.path(), &tuning).unwrap_err();
        assert!(error.to_string().contains("has this kernel the setting?"));
        assert_eq!(base_slice_in_force(folder.path()), Some(2_800_000));
    }

    #[test]
    fn a_kernel_that_makes_something_else_of_it_is_an_error() {
        let folder = folder("(a)\n", "");
        let name = folder.path().join(BASE_SLICE);
        // A write that has no effect, as of a kernel that rounds: a file of no room.
        std::fs::remove_file(&name).unwrap();
        std::os::unix::fs::symlink("/dev/null", &name).unwrap();
        let error = Changed::apply(folder.path(), &slice(1_000_000)).unwrap_err();
        assert!(error.to_string().ends_with("after 1000000 was written"));
    }
}
