//! Paths in the repository.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of the programs of this workspace, from the root.
const RELEASE: &str = "userspace/target/release";

/// The repository. Relative paths of settings start at its root, and the programs that are
/// called have it as their working folder: so paths are the same in messages, in options
/// and on the command line.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
    peers: PathBuf,
}

impl Tree {
    /// The repository at `root`. `cache` is the folder for what is downloaded and built
    /// once, `.cache` if it is not given.
    pub fn new(root: impl Into<PathBuf>, cache: Option<OsString>) -> Self {
        let cache = cache.filter(|cache| !cache.is_empty());
        let cache = PathBuf::from(cache.unwrap_or_else(|| ".cache".into()));
        Self {
            root: root.into(),
            peers: cache.join("peers/bin"),
        }
    }

    /// The repository around the current folder, with the cache that the environment
    /// variable `SCX_SFS_CACHE` names.
    ///
    /// # Errors
    /// If the current folder is in no such repository.
    pub fn find() -> Result<Self> {
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("vm/run").exists());
        let root = root.with_context(|| {
            format!(
                "there is no vm/run in {} or above it; run it in the repository, as make does",
                here.display()
            )
        })?;
        Ok(Self::new(root, std::env::var_os("SCX_SFS_CACHE")))
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `path` as this process finds it.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// A program of this workspace, from the root.
    pub fn program(&self, name: &str) -> PathBuf {
        Path::new(RELEASE).join(name)
    }

    /// The folder of this workspace's programs, from the root.
    pub fn release(&self) -> &Path {
        Path::new(RELEASE)
    }

    /// The folder of the schedulers that `make peers` builds, from the root.
    pub fn peers(&self) -> &Path {
        &self.peers
    }

    /// Whether the file at `path` can be executed.
    pub fn is_program(&self, path: impl AsRef<Path>) -> bool {
        is_program(&self.at(path))
    }
}

/// Whether the file at `path` can be executed.
pub fn is_program(path: &Path) -> bool {
    use nix::unistd::{access, AccessFlags};
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

/// The program that a shell would run by this name.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|path| is_program(path))
}
