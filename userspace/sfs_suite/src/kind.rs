//! Cases that need a machine of their own.

use sfs_jobs::tree::is_program;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where mkfs.ext4 is if PATH has no folders for root.
const SBIN: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The machine that a case needs. `sfs_behaviour` knows it by the begin of the case's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With a disk. With one, figures do not repeat.
    Disk,
    /// In real time: virtual time stands still while all CPUs are off.
    Suspend,
    /// With an isolated CPU.
    Isolcpus,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Disk, Self::Suspend, Self::Isolcpus];

    /// Its name for `sfs_behaviour --apart`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Suspend => "suspend",
            Self::Isolcpus => "isolcpus",
        }
    }

    /// The options of vm/run for such a machine.
    pub fn machine(self) -> Vec<OsString> {
        match self {
            Self::Disk => {
                let mkfs = mkfs().map(|path| [OsString::from("--in"), path.into()]);
                let disk = ["--disk", "256M"].map(OsString::from);
                disk.into_iter().chain(mkfs.into_iter().flatten()).collect()
            }
            Self::Suspend => ["--accel", "tcg"].map(OsString::from).to_vec(),
            // The second one: there are two on any machine on which the case runs.
            Self::Isolcpus => ["--append", "isolcpus=1 nohz_full=1"]
                .map(OsString::from)
                .to_vec(),
        }
    }
}

fn mkfs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&path)
        .chain(SBIN.map(PathBuf::from))
        .map(|folder| folder.join("mkfs.ext4"));
    programs.find(|path| is_program(path))
}
