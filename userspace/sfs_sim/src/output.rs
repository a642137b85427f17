//! Files that are complete or not there at all.

use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A place to write to. It is opened when made, so that one that cannot be
/// written is found before the work; dropped without [`commit`](Self::commit),
/// it leaves what was there.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    /// Where a regular file is until it is complete. A device or a pipe has
    /// none: moving a file to its place would replace it.
    temporary: Option<PathBuf>,
}

impl Output {
    /// Opens `path`, or a hidden file beside it.
    ///
    /// # Errors
    /// If `path` is a folder or cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => bail!("{}: it is a folder", cannot()),
            Ok(found) if !found.is_file() => Ok(Self {
                path: path.to_path_buf(),
                file: File::options()
                    .write(true)
                    .open(path)
                    .with_context(cannot)?,
                temporary: None,
            }),
            _ => Self::beside(path).with_context(cannot),
        }
    }

    fn beside(path: &Path) -> Result<Self> {
        // What a link points to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().context("it has no name")?);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        Ok(Self {
            file: File::create(&temporary)?,
            temporary: Some(temporary),
            path,
        })
    }

    /// Writes `content` and moves the file to its place.
    ///
    /// # Errors
    /// If the disk is full or the place was taken away meanwhile.
    pub fn commit(mut self, content: &[u8]) -> Result<()> {
        let cannot = || format!("cannot write {}", self.path.display());
        self.file.write_all(content).with_context(cannot)?;
        self.file.flush().with_context(cannot)?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path).with_context(cannot)?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing is lost if it stays: it is empty or half written.
            let _ = fs::remove_file(temporary);
        }
    }
}
