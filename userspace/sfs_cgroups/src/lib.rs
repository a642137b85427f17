//! The cgroups of this machine, as files: which are sandboxes of functions, and
//! which have a quota that would not be enforced. It knows nothing of the
//! kernel half.
//!
//! | module | purpose |
//! |---|---|
//! | `pattern` | `--cgroup`: patterns for the paths of sandboxes |
//! | `sandboxes` | reports sandboxes that appear and vanish |
//! | [`quota`] | quotas that would not be enforced |
#![allow(
    clippy::len_without_is_empty,
    reason = "the loader asks for the number of sandboxes only"
)]

mod pattern;
pub mod quota;
mod sandboxes;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use tracing::warn;

pub use pattern::SandboxPattern;
pub use sandboxes::{Change, Sandboxes};

/// Mount point of cgroup v2.
pub const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Returns the names of the folders in `path`; none if it has gone.
pub fn folders_in(path: &Path) -> Vec<OsString> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                warn!("cannot look for cgroups in {}: {error}", path.display());
            }
            return Vec::new();
        }
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name())
        .collect()
}
