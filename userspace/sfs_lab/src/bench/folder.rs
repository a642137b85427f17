//! The folder of the results.
//!
//! `OUT/.bench` is what this program keeps to itself: `manifest` says what all rows have in
//! common, `ROW.manifest` the rest of a row, `ROW.took` how many seconds its VM took, and
//! `ROW.run` is where a row's results are until they are complete. `ROW.manifest` is
//! written last: a row has a result if and only if it is there.

use super::manifest::changed;
use crate::lock;
use anyhow::{Context, Result};
use nix::unistd::{access, AccessFlags};
use sfs_jobs::failure::refuse;
use sfs_jobs::tree::Tree;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of a row, by the ends of their names.
pub const LEFT: [&str; 5] = ["csv", "log", "console", "state", "json"];

/// The folder, locked: only one bench at a time works in it.
#[derive(Debug)]
pub struct Folder {
    /// From the repository's root, for messages and other programs.
    out: PathBuf,
    /// Its path for this process.
    here: PathBuf,
    /// The lock ends with this process and with the VMs that it may leave behind.
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is missing, and takes away what is made anew each time.
    ///
    /// # Errors
    /// If that cannot be, or another bench is at work there.
    pub fn open(tree: &Tree, out: &Path) -> Result<Self> {
        let (here, shown) = (tree.at(out), out.display());
        let state = here.join(".bench");
        if let Err(error) = fs::create_dir_all(&state) {
            refuse!("cannot make the folder OUT={shown}: {error}");
        }
        let writable = |folder: &Path| access(folder, AccessFlags::W_OK).is_ok();
        if !writable(&here) || !writable(&state) {
            refuse!("cannot write to the folder OUT={shown}");
        }
        let Some(lock) = lock::take(&state.join("lock"))? else {
            refuse!("another bench is at work in {shown}; wait for it, or set another OUT");
        };
        let folder = Self {
            out: out.to_path_buf(),
            here,
            _lock: lock,
        };
        remove(&folder.here.join("summary.json"))?;
        remove(&folder.here.join("report.html"))?;
        for run in folder.kept("run")? {
            remove(&folder.state(&run, "run"))?;
        }
        Ok(folder)
    }

    /// The folder from the repository's root.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// A row's result, from the repository's root.
    pub fn result(&self, row: &str, kind: &str) -> PathBuf {
        self.out.join(format!("{row}.{kind}"))
    }

    /// The folder of a row's run, from the repository's root.
    pub fn run(&self, row: &str) -> PathBuf {
        self.out.join(".bench").join(format!("{row}.run"))
    }

    /// The files of a row in the folder of its run.
    pub fn in_run(&self, row: &str, name: &str) -> PathBuf {
        self.state(row, "run").join(name)
    }

    fn state(&self, row: &str, kind: &str) -> PathBuf {
        self.here.join(".bench").join(format!("{row}.{kind}"))
    }

    fn place(&self, row: &str, kind: &str) -> PathBuf {
        self.here.join(format!("{row}.{kind}"))
    }

    /// The rows that have such a file of ours.
    fn kept(&self, kind: &str) -> Result<Vec<String>> {
        let folder = self.here.join(".bench");
        let cannot = || format!("cannot read the folder {}", folder.display());
        let mut rows = Vec::new();
        for entry in fs::read_dir(&folder).with_context(cannot)? {
            let name = entry.with_context(cannot)?.file_name();
            let name = name.to_string_lossy();
            rows.extend(name.strip_suffix(&format!(".{kind}")).map(str::to_string));
        }
        Ok(rows)
    }

    /// Starts afresh if the folder has results of other settings, or if that is asked for.
    /// Returns the words for what differs.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn keep_common(&self, new: &str, fresh: bool) -> Result<Option<String>> {
        let path = self.here.join(".bench/manifest");
        let old = read(&path)?.filter(|old| !fresh && !is_same(old, new));
        if fresh || old.is_some() {
            for row in self.kept("manifest")? {
                self.forget(&row)?;
            }
        }
        let next = self.here.join(".bench/manifest.new");
        write(&next, new)?;
        rename(&next, &path)?;
        Ok(old.map(|old| changed(&old, new)))
    }

    /// The manifest of a row, if it has a result.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn manifest(&self, row: &str) -> Result<Option<String>> {
        if !self.place(row, "json").exists() {
            return Ok(None);
        }
        read(&self.state(row, "manifest"))
    }

    /// Removes the results of a row. What else is in the folder is left alone.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn forget(&self, row: &str) -> Result<()> {
        for kind in ["manifest", "took", "run"] {
            remove(&self.state(row, kind))?;
        }
        LEFT.iter()
            .try_for_each(|kind| remove(&self.place(row, kind)))
    }

    /// Makes the folder of a row's run, which says from the start what it is made from.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn begin(&self, row: &str, manifest: &str) -> Result<()> {
        self.forget(row)?;
        let run = self.state(row, "run");
        fs::create_dir(&run).with_context(|| format!("cannot make {}", run.display()))?;
        write(&run.join("manifest"), manifest)
    }

    /// Moves such a file of a row's run to its place, if there is one.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn take(&self, row: &str, kind: &str) -> Result<()> {
        let from = self.in_run(row, &format!("{row}.{kind}"));
        match from.exists() {
            true => rename(&from, &self.place(row, kind)),
            false => Ok(()),
        }
    }

    /// A row's results are in their places, and count from now on; its VM took so many
    /// seconds.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn settle(&self, row: &str, took_s: u64) -> Result<()> {
        write(&self.state(row, "took"), format!("{took_s}\n"))?;
        rename(&self.in_run(row, "manifest"), &self.state(row, "manifest"))?;
        remove(&self.state(row, "run"))
    }

    /// A row's run came to nothing: keeps what it said as its log, and its console.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn give_up(&self, row: &str, said: &[u8]) -> Result<()> {
        write(&self.place(row, "log"), said)?;
        self.take(row, "console")?;
        remove(&self.state(row, "run"))
    }

    /// The mean seconds of the VMs so far, those of earlier runs into this folder included.
    pub fn mean_took_s(&self) -> Option<u64> {
        let rows = self.kept("took").unwrap_or_default();
        let took = rows.iter().filter_map(|row| {
            let text = fs::read_to_string(self.state(row, "took")).ok()?;
            text.trim().parse::<u64>().ok().filter(|took| *took > 0)
        });
        let (count, sum) = took.fold((0, 0), |(count, sum), took| (count + 1, sum + took));
        (count > 0).then(|| sum / count)
    }
}

/// Whether two manifests say the same: but for line feeds at the end.
pub fn is_same(old: &str, new: &str) -> bool {
    old.trim_end_matches('\n') == new.trim_end_matches('\n')
}

/// The text of a file, if it is there.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

/// Removes a file or a folder, if it is there.
fn remove(path: &Path) -> Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|data| data.is_dir());
    let removed = match is_folder {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(root: &Path) -> Result<Folder> {
        Folder::open(&Tree::new(root, None), Path::new("out"))
    }

    #[test]
    fn two_benches_do_not_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let one = folder(root.path()).unwrap();
        let said = folder(root.path()).unwrap_err().to_string();
        assert!(
            said.starts_with("another bench is at work in out;"),
            "{said}"
        );
        drop(one);
        folder(root.path()).unwrap();
    }

    #[test]
    fn a_row_has_a_result_once_it_is_settled() {
        let root = tempfile::tempdir().unwrap();
        let folder = folder(root.path()).unwrap();
        folder.begin("ps", "options \n").unwrap();
        fs::write(folder.in_run("ps", "ps.json"), "{}").unwrap();
        for kind in LEFT {
            folder.take("ps", kind).unwrap();
        }
        assert_eq!(folder.manifest("ps").unwrap(), None);
        folder.settle("ps", 7).unwrap();
        assert_eq!(folder.manifest("ps").unwrap().unwrap(), "options \n");
        assert_eq!(folder.mean_took_s(), Some(7));
        folder.forget("ps").unwrap();
        assert_eq!(folder.manifest("ps").unwrap(), None);
        assert_eq!(folder.mean_took_s(), None);
    }

    #[test]
    fn another_trace_forgets_the_rows_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = folder(root.path()).unwrap();
        let keep = |text, fresh| folder.keep_common(text, fresh).unwrap();
        assert_eq!(keep("trace a 1\n", false), None);
        let there = || folder.place("ps", "csv").exists();
        let put = || {
            folder.begin("ps", "x").unwrap();
            folder.settle("ps", 0).unwrap();
            fs::write(folder.place("ps", "csv"), "").unwrap();
        };
        put();
        fs::write(folder.place("note", "csv"), "").unwrap();
        assert_eq!(keep("trace a 1\n", false), None);
        assert!(there());
        assert_eq!(keep("trace a 2\n", false).unwrap(), "trace");
        assert!(!there() && folder.place("note", "csv").exists());
        put();
        assert_eq!(keep("trace a 2\n", true), None);
        assert!(!there());
    }

    #[test]
    fn what_cannot_be_a_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("out"), "").unwrap();
        let said = folder(root.path()).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot make the folder OUT=out: "),
            "{said}"
        );
    }
}
