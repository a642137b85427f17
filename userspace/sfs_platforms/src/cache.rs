//! The cache of `vm/`, with the same lock and the same folders as `vm/lib.sh`.

use crate::say;
use anyhow::{Context, Result};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use sfs_jobs::failure::Failure;
use sfs_jobs::tree::Tree;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The cache, which others may use at the same time.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The cache, which nobody else fetches into.
#[derive(Debug)]
pub struct Locked<'a> {
    cache: &'a Cache,
    /// Locked until it is closed here and in the programs that were started meanwhile.
    _lock: File,
}

impl Cache {
    /// The folder that `SCX_SFS_CACHE` names, or `.cache` in the repository.
    ///
    /// # Errors
    /// If the current folder cannot be told.
    pub fn find(tree: &Tree) -> Result<Self> {
        let given = std::env::var_os("SCX_SFS_CACHE").filter(|path| !path.is_empty());
        let folder = given.map_or_else(|| tree.at(".cache"), PathBuf::from);
        let folder = std::path::absolute(folder).context("cannot tell where the cache is")?;
        // What is not there yet is not a link.
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        Ok(Self { folder })
    }

    /// A path in the cache.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// Waits until nobody else fetches into the cache. `name` is that of the program that
    /// says so.
    ///
    /// # Errors
    /// If the cache cannot be made or locked.
    pub fn lock(&self, name: &'static str) -> Result<Locked<'_>> {
        let folder = self.folder.display();
        let file = fs::create_dir_all(&self.folder).and_then(|()| File::create(self.at("lock")));
        let file = file.map_err(|_| {
            Failure::Vm(format!(
                "cannot create the cache directory {folder}; set SCX_SFS_CACHE to a writable one"
            ))
        })?;
        // A program that still writes to the cache after our end keeps others out.
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).context("cannot share the lock")?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(
                    name,
                    &format!("another fetch is using {folder}; waiting for it"),
                );
                file.lock().context("cannot lock the cache")?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).context("cannot lock the cache");
            }
        }
        Ok(Locked {
            cache: self,
            _lock: file,
        })
    }
}

impl Locked<'_> {
    /// An empty folder in the cache, so that a rename is atomic, for work in progress. What an
    /// interrupted fetch has left there is removed.
    ///
    /// # Errors
    /// If it cannot be emptied or made.
    pub fn staging(&self) -> Result<PathBuf> {
        let staging = self.cache.at("staging");
        if staging.exists() {
            fs::remove_dir_all(&staging).context("cannot empty the cache's staging folder")?;
        }
        fs::create_dir_all(&staging).context("cannot make the cache's staging folder")?;
        Ok(staging)
    }

    /// Puts a finished file into place.
    ///
    /// # Errors
    /// If it cannot be moved there.
    pub fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let folder = to.parent().unwrap_or(to);
        let moved = fs::create_dir_all(folder).and_then(|()| fs::rename(from, to));
        moved.map_err(|_| {
            let (name, cache) = (to.file_name().unwrap_or_default(), &self.cache.folder);
            Failure::Vm(format!(
                "cannot put {} into the cache {}; is the disk full?",
                name.display(),
                cache.display()
            ))
            .into()
        })
    }
}
