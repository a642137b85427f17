//! Shared by tests.

use std::path::{Path, PathBuf};

/// Why a test is skipped.
pub const NOT_BUILT: &str = "the programs are not built; run make";

/// Where a program of this workspace is: where cargo has put ours, or where make puts them.
pub fn built(name: &str) -> Option<PathBuf> {
    let ours = Path::new(env!("CARGO_BIN_EXE_sfs_lab")).parent()?;
    let release = ours.parent()?.join("release");
    let mut paths = [ours.join(name), release.join(name)].into_iter();
    paths.find(|path| path.exists())
}
