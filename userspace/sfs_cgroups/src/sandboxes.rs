//! Sandboxes: the cgroups that belong to functions. Patterns name them, and they may appear and
//! vanish at any time. The kernel reports both through inotify, so nothing is polled.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tracing::{debug, warn};

use crate::folders_in;
use crate::pattern::SandboxPattern;

/// A change of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The cgroup with this id is a sandbox, of the function with this name.
    Appeared(u64, String),
    /// The sandbox with this id has gone.
    Vanished(u64),
}

/// A folder that may have sandboxes below it.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    /// Patterns (by index) that match the path down to this folder.
    candidates: Vec<usize>,
    depth: usize,
}

/// Watches the cgroup hierarchy for sandboxes.
pub struct Sandboxes {
    inotify: Inotify,
    root: PathBuf,
    patterns: Vec<SandboxPattern>,
    by_parent: bool,
    folders: HashMap<WatchDescriptor, Watched>,
    known: HashMap<PathBuf, u64>,
    complained: bool,
}

impl Sandboxes {
    /// Starts to watch the hierarchy at `root` for cgroups that match `patterns`. With
    /// `by_parent`, functions are named after the parent cgroup. Returns the sandboxes already
    /// present as changes.
    ///
    /// # Errors
    ///
    /// There is no such hierarchy, or the kernel has no room for a watch.
    pub fn watch(
        root: &Path,
        patterns: Vec<SandboxPattern>,
        by_parent: bool,
    ) -> Result<(Self, Vec<Change>)> {
        if !root.join("cgroup.controllers").exists() {
            bail!(
                "--cgroup needs cgroup v2 at {}, which is not mounted there",
                root.display()
            );
        }
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)
            .context("cannot watch for cgroups")?;
        let mut watch = Self {
            inotify,
            root: root.to_owned(),
            patterns,
            by_parent,
            folders: HashMap::new(),
            known: HashMap::new(),
            complained: false,
        };
        let mut changes = Vec::new();
        watch.start_over(&mut changes)?;
        Ok((watch, changes))
    }

    /// Returns the number of sandboxes.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the changes since the last call, without waiting. A failure to watch a new
    /// folder is logged once; sandboxes in it are not seen.
    ///
    /// # Errors
    ///
    /// The kernel no longer reports changes.
    pub fn changes(&mut self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        loop {
            match self.inotify.read_events() {
                Ok(events) => {
                    for event in events {
                        let taken = self.take(&event, &mut changes);
                        taken.unwrap_or_else(|error| self.complain(&error));
                    }
                }
                Err(Errno::EAGAIN) => return Ok(changes),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot watch for cgroups"),
            }
        }
    }

    fn complain(&mut self, error: &anyhow::Error) {
        if !self.complained {
            self.complained = true;
            warn!("{error:#}; sandboxes there and in similar places are not seen");
        }
    }

    fn take(&mut self, event: &InotifyEvent, changes: &mut Vec<Change>) -> Result<()> {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            warn!("too many cgroups changed at once: scanning all of them");
            return self.start_over(changes);
        }
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            self.folders.remove(&event.wd);
            return Ok(());
        }
        let (Some(folder), Some(name)) = (self.folders.get(&event.wd), &event.name) else {
            return Ok(());
        };
        let (path, depth) = (folder.path.join(name), folder.depth);
        let gone = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
        if event.mask.intersects(gone) {
            changes.extend(self.known.remove(&path).map(Change::Vanished));
            return Ok(());
        }
        let candidates = folder.candidates.clone();
        self.visit(&path, name, depth, &candidates, changes)
    }

    /// Scans the whole hierarchy.
    fn start_over(&mut self, changes: &mut Vec<Change>) -> Result<()> {
        let gone: Vec<PathBuf> = self
            .known
            .iter()
            .filter(|(path, id)| cgroup_id(path) != Some(**id))
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            changes.extend(self.known.remove(&path).map(Change::Vanished));
        }
        let all: Vec<usize> = (0..self.patterns.len()).collect();
        self.enter(&self.root.clone(), 0, all, changes)
    }

    /// Visits the cgroup at `path`. The `candidates` match the `depth` components above it.
    fn visit(
        &mut self,
        path: &Path,
        name: &OsStr,
        depth: usize,
        candidates: &[usize],
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        let Some(name) = name.to_str() else {
            return Ok(());
        };
        let mut deeper = Vec::new();
        let mut is_sandbox = false;
        for candidate in candidates {
            match self.patterns[*candidate].step(depth, name) {
                Some(true) => is_sandbox = true,
                Some(false) => deeper.push(*candidate),
                None => {}
            }
        }
        if is_sandbox {
            // Tasks in a sandbox may create cgroups below it. These are part of it, not
            // sandboxes.
            self.register(path, changes);
            return Ok(());
        }
        if deeper.is_empty() {
            return Ok(());
        }
        self.enter(path, depth + 1, deeper, changes)
    }

    fn register(&mut self, path: &Path, changes: &mut Vec<Change>) {
        // It may already be gone.
        let Some(id) = cgroup_id(path) else {
            return;
        };
        match self.known.insert(path.to_owned(), id) {
            Some(old) if old == id => return,
            Some(old) => changes.push(Change::Vanished(old)),
            None => {}
        }
        let function = self.function_of(path);
        debug!("sandbox {} of {function} has id {id}", path.display());
        changes.push(Change::Appeared(id, function));
    }

    /// Returns the name of the function whose sandbox is at `path`, from the first matching
    /// pattern.
    fn function_of(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let below = below.to_string_lossy();
        self.patterns
            .iter()
            .find_map(|pattern| pattern.function_of(&below, self.by_parent))
            .unwrap_or_else(|| below.into_owned())
    }

    /// Watches the folder at `path`, then scans its content. A folder created in between is
    /// seen twice and registered once.
    fn enter(
        &mut self,
        path: &Path,
        depth: usize,
        candidates: Vec<usize>,
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_ONLYDIR;
        let descriptor = match self.inotify.add_watch(path, flags) {
            Ok(descriptor) => descriptor,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
            Err(Errno::ENOSPC) => bail!(
                "cannot watch {} for sandboxes: raise the sysctl fs.inotify.max_user_watches",
                path.display()
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot watch {}", path.display()))
            }
        };
        self.folders.insert(
            descriptor,
            Watched {
                path: path.to_owned(),
                candidates: candidates.clone(),
                depth,
            },
        );
        for name in folders_in(path) {
            self.visit(&path.join(&name), &name, depth, &candidates, changes)?;
        }
        Ok(())
    }
}

impl AsFd for Sandboxes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Returns the kernel's id of a cgroup, which is its folder's inode number.
fn cgroup_id(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    found.is_dir().then(|| found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain folders behave like cgroups, except for the meaning of their ids.
    fn hierarchy() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu").unwrap();
        root
    }

    fn patterns(texts: &[&str]) -> Vec<SandboxPattern> {
        texts
            .iter()
            .map(|text| SandboxPattern::parse(text).unwrap())
            .collect()
    }

    fn id(path: PathBuf) -> u64 {
        cgroup_id(&path).unwrap()
    }

    #[test]
    fn existing_sandboxes_are_found() {
        let root = hierarchy();
        fs::create_dir_all(root.path().join("f/a/inner")).unwrap();
        fs::create_dir_all(root.path().join("other/b")).unwrap();
        let (watch, changes) = Sandboxes::watch(root.path(), patterns(&["f/*"]), false).unwrap();
        let id = id(root.path().join("f/a"));
        assert_eq!(changes, [Change::Appeared(id, "f/a".into())]);
        assert_eq!(watch.len(), 1);
    }

    #[test]
    fn sandboxes_that_come_and_go_are_reported() {
        let root = hierarchy();
        let (mut watch, changes) = Sandboxes::watch(
            root.path(),
            patterns(&["*-sandboxes/cg-*", "pods/*/c*"]),
            false,
        )
        .unwrap();
        assert_eq!(changes, []);

        let first = root.path().join("ol-sandboxes/cg-1");
        fs::create_dir_all(&first).unwrap();
        let second = root.path().join("pods/p/c1");
        fs::create_dir_all(&second).unwrap();
        fs::create_dir_all(root.path().join("pods/p/other")).unwrap();
        let (first, second) = (id(first), id(second));
        let mut changes = watch.changes().unwrap();
        let first_one = Change::Appeared(first, "ol-sandboxes/cg".into());
        changes.sort_by_key(|change| *change != first_one);
        let second_one = Change::Appeared(second, "pods/p/c1".into());
        assert_eq!(changes, [first_one, second_one]);

        fs::remove_dir(root.path().join("ol-sandboxes/cg-1")).unwrap();
        assert_eq!(watch.changes().unwrap(), [Change::Vanished(first)]);
        fs::remove_dir_all(root.path().join("pods")).unwrap();
        assert_eq!(watch.changes().unwrap(), [Change::Vanished(second)]);
        assert_eq!(watch.len(), 0);
    }

    #[test]
    fn a_thousand_at_once_are_all_seen() {
        let root = hierarchy();
        fs::create_dir(root.path().join("f")).unwrap();
        let (mut watch, _) = Sandboxes::watch(root.path(), patterns(&["f/*"]), false).unwrap();
        for number in 0..1000 {
            fs::create_dir(root.path().join(format!("f/{number}"))).unwrap();
        }
        assert_eq!(watch.changes().unwrap().len(), 1000);
        assert_eq!(watch.len(), 1000);
    }

    #[test]
    fn a_missing_hierarchy_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let error = Sandboxes::watch(root.path(), patterns(&["f/*"]), false).map(|_| ());
        assert!(error.unwrap_err().to_string().contains("cgroup v2"));
    }
}
