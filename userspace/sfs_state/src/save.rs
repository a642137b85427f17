//! Saves the learned state to a file outside the control loop, which must
//! answer overload even if the disk is slow, full, or gone.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::fcntl::{openat, renameat, OFlag};
use nix::sys::stat::Mode;
use nix::unistd::{unlinkat, UnlinkatFlags};
use sfs_policy::learn::Snapshot;
use tracing::warn;

/// A thread that writes snapshots one after the other. Dropping it waits until all are written.
pub struct Saver {
    jobs: Option<Sender<Snapshot>>,
    /// Number of snapshots not yet written.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    /// Starts the thread, which saves to `file`. A failure to save is logged and stops nothing.
    ///
    /// # Errors
    ///
    /// The thread cannot be created.
    pub fn start(file: PathBuf) -> io::Result<Self> {
        Self::start_with(move |bytes| {
            if let Err(error) = write_whole(&file, bytes) {
                let file = file.display();
                warn!("cannot save what was learned to {file}: {error:#}");
            }
        })
    }

    fn start_with(mut write: impl FnMut(&[u8]) + Send + 'static) -> io::Result<Self> {
        let (jobs, todo): (Sender<Snapshot>, Receiver<Snapshot>) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .name("sfs_save".into())
            .spawn(move || {
                for snapshot in todo {
                    write(&snapshot.encode());
                    written.fetch_sub(1, Ordering::Release);
                }
            })?;
        Ok(Self {
            jobs: Some(jobs),
            waiting,
            thread: Some(thread),
        })
    }

    /// Returns whether all snapshots so far have been processed.
    pub fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Queues `snapshot` for writing, after the earlier ones. Does not wait.
    pub fn save(&self, snapshot: Snapshot) {
        if let Some(jobs) = &self.jobs {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            // The thread lives as long as there may be work.
            let _ = jobs.send(snapshot);
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a file so that a reader sees either the old content or the new one, whatever happens
/// on the way. Only this user can read it.
///
/// # Errors
///
/// It cannot be written; the old file is unchanged.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    replace(file, |out| out.write_all(bytes))
}

fn replace(file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let name = file.file_name().context("this path has no file name")?;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // All names are looked up in this folder, even if the path changes meanwhile.
    let folder = File::open(folder).context("cannot open its folder")?;
    let mut new = name.to_owned();
    new.push(".new");
    let written = write_new(&folder, &new, write).and_then(|()| {
        renameat(&folder, new.as_os_str(), &folder, name).context("cannot move it into place")
    });
    written.inspect_err(|_| {
        let _ = remove(&folder, &new);
    })?;
    // Without this, a crash may still bring the old file back.
    folder.sync_all().context("cannot sync its folder")
}

/// Creates a file that must not exist, writes it, and syncs it to the disk.
fn write_new(
    folder: &File,
    name: &OsString,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<()> {
    let mut out = create(folder, name).context("cannot create a new file beside it")?;
    write(&mut out)?;
    out.sync_all()?;
    Ok(())
}

/// Creates a file that must not exist. A leftover of a crash, or anything else of that name, is
/// removed first. Removal does not follow a link.
fn create(folder: &File, name: &OsStr) -> Result<File, Errno> {
    let make = || {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).map(File::from)
    };
    match make() {
        Err(Errno::EEXIST) => {
            remove(folder, name)?;
            make()
        }
        made => made,
    }
}

fn remove(folder: &File, name: &OsStr) -> Result<(), Errno> {
    unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sfs_policy::learn::{LearnConfig, Learner};
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::{symlink, PermissionsExt};
    use tempfile::TempDir;

    /// Returns a folder with an old file in it.
    fn bench() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state");
        fs::write(&file, "old").unwrap();
        (dir, file)
    }

    fn names_in(dir: &TempDir) -> Vec<OsString> {
        let entries = fs::read_dir(dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|one| one.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_new_file_takes_the_place_of_the_old_one() {
        let (dir, file) = bench();
        write_whole(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(names_in(&dir), ["state"]);
    }

    #[test]
    fn links_in_place_of_the_new_file_are_not_followed() {
        for there in [true, false] {
            let (dir, file) = bench();
            let precious = dir.path().join("precious");
            if there {
                fs::write(&precious, "precious").unwrap();
            }
            symlink(&precious, dir.path().join("state.new")).unwrap();
            write_whole(&file, b"new").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"new");
            assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
            let kept = fs::read(&precious).ok();
            assert_eq!(kept.as_deref(), there.then_some(&b"precious"[..]));
        }
    }

    #[test]
    fn a_link_to_another_file_is_replaced_and_not_written_through() {
        let (dir, _) = bench();
        let link = dir.path().join("link");
        symlink("state", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(dir.path().join("state")).unwrap(), b"old");
        assert_eq!(fs::read(&link).unwrap(), b"new");
    }

    #[test]
    fn leftovers_of_a_crash_are_removed() {
        let (dir, file) = bench();
        let left = dir.path().join("state.new");
        fs::write(&left, "half of it, and rather more than there will b").unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
        // Other processes with the file open must not see the new content.
        let mut peeping = File::open(&left).unwrap();
        write_whole(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut seen = String::new();
        io::Read::read_to_string(&mut peeping, &mut seen).unwrap();
        assert!(seen.starts_with("half of it"));
        assert_eq!(names_in(&dir), ["state"]);
    }

    /// The disk becomes full halfway. (The suite uses a real full disk in a live kernel.)
    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let (dir, file) = bench();
        let failed = replace(&file, |out| {
            out.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names_in(&dir), ["state"]);
    }

    #[test]
    fn a_failed_replacement_is_an_error() {
        let (dir, _) = bench();
        for wrong in [
            Path::new("/"),
            Path::new("/no/such/folder/state"),
            Path::new(".."),
        ] {
            assert!(write_whole(wrong, b"new").is_err(), "{}", wrong.display());
        }
        // A folder in place of the file, and one in place of the new file.
        fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(write_whole(&dir.path().join("folder"), b"new").is_err());
        fs::create_dir(dir.path().join("other.new")).unwrap();
        assert!(write_whole(&dir.path().join("other"), b"new").is_err());
        assert_eq!(names_in(&dir), ["folder", "other.new", "state"]);
    }

    fn snapshot(completions: u64) -> Snapshot {
        let mut learner = Learner::new(LearnConfig::default());
        (0..completions).for_each(|_| learner.on_completion(7, 1_000_000));
        learner.snapshot()
    }

    #[test]
    fn the_end_waits_for_what_is_being_written_and_for_the_last() {
        let (go, wait) = channel::<()>();
        let (wrote, written) = channel();
        let saver = Saver::start_with(move |bytes| {
            let _ = wait.recv();
            wrote.send(bytes.to_vec()).unwrap();
        })
        .unwrap();
        assert!(saver.is_idle());
        saver.save(snapshot(1));
        saver.save(snapshot(2));
        assert!(!saver.is_idle());
        assert!(written.try_recv().is_err());
        let end = thread::spawn(move || drop(saver));
        go.send(()).unwrap();
        go.send(()).unwrap();
        end.join().unwrap();
        let written: Vec<Vec<u8>> = written.try_iter().collect();
        assert_eq!(written, [snapshot(1).encode(), snapshot(2).encode()]);
    }
}
