//! Locks of folders in which one program at a time may work.

use anyhow::{Context, Result};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Takes the lock, and hands it on to all programs that are started; none if somebody
/// else has it. The lock ends with the file and with these programs.
///
/// # Errors
/// If the file cannot be made or locked.
pub fn take(path: &Path) -> Result<Option<File>> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).open(path);
    let file = file.with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
    }
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).with_context(cannot)?;
    Ok(Some(file))
}
