//! Surroundings for a loader under test: files that are missing or useless, a disk
//! that is full, memory that is short, a BPF map that is frozen; a disk that is one.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use anyhow::{ensure, Context, Result};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::MapHandle;

use crate::case::Skip;
use crate::cgroup::Cgroup;

/// Has the program that `command` starts find an empty folder at `place`, or the file
/// `instead`. Nobody else does.
pub fn cover(command: &mut Command, place: &CStr, instead: Option<&CStr>) {
    let (place, instead) = (place.to_owned(), instead.map(CStr::to_owned));
    let mount = move || {
        own_mounts()?;
        match &instead {
            Some(file) => mount(file, &place, c"", libc::MS_BIND, c""),
            None => mount(c"none", &place, c"tmpfs", 0, c""),
        }
    };
    // SAFETY: system calls only, between fork and exec.
    unsafe { command.pre_exec(mount) };
}

/// Has the program that `command` starts be in `group` from its first instruction on.
///
/// # Errors
///
/// The group is gone.
pub fn put_into(command: &mut Command, group: &Cgroup) -> Result<()> {
    let mut members = group.open_file("cgroup.procs")?;
    // SAFETY: a system call only, between fork and exec.
    unsafe { command.pre_exec(move || members.write_all(b"0")) };
    Ok(())
}

/// Has the kernel's OOM killer spare the program that `command` starts.
pub fn protect_from_oom_killer(command: &mut Command) {
    let protect = || {
        let mut file = File::options()
            .write(true)
            .open("/proc/self/oom_score_adj")?;
        file.write_all(b"-1000")
    };
    // SAFETY: system calls only, between fork and exec.
    unsafe { command.pre_exec(protect) };
}

/// Has the kernel refuse any change of the BPF map `name` that does not come from a BPF
/// program.
///
/// # Errors
///
/// There is no such map, or more than one.
pub fn freeze_map(name: &str) -> Result<()> {
    let maps: Vec<u32> = MapInfoIter::default()
        .filter(|map| map.name == name)
        .map(|map| map.id)
        .collect();
    ensure!(maps.len() == 1, "there are {} maps {name}", maps.len());
    MapHandle::from_map_id(maps[0])
        .and_then(|map| map.freeze())
        .with_context(|| format!("cannot freeze the map {name}"))
}

/// A small disk of the calling process and its children. It goes with them.
pub struct Disk {
    path: &'static str,
}

impl Disk {
    /// Mounts 64 KiB at `path`.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn mount(path: &'static str) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make {path}"))?;
        let place = std::ffi::CString::new(path)?;
        own_mounts()
            .and_then(|()| mount(c"none", &place, c"tmpfs", 0, c"size=64k"))
            .with_context(|| format!("cannot mount {path}"))?;
        Ok(Self { path })
    }

    /// Returns its folder.
    pub fn path(&self) -> &Path {
        Path::new(self.path)
    }

    /// Fills it up to the last byte.
    ///
    /// # Errors
    ///
    /// It cannot be written for another reason than that it is full.
    pub fn fill(&self) -> Result<()> {
        let mut file = File::create(self.ballast())?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).context("cannot fill the disk"),
            }
        }
    }

    /// Makes room again.
    ///
    /// # Errors
    ///
    /// It has not been filled.
    pub fn relieve(&self) -> Result<()> {
        fs::remove_file(self.ballast()).context("the disk has not been filled")
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

/// An empty file system on the disk that the machine has for tests. It goes with the
/// calling process.
pub struct Ext4;

impl Ext4 {
    const DISK: &str = "/dev/nvme0n1";
    const PLACE: &str = "/tmp/disk";

    /// Makes and mounts it.
    ///
    /// # Errors
    ///
    /// There is no such disk, or no program to make one (a [`Skip`]); it cannot be
    /// mounted.
    pub fn mount() -> Result<Self> {
        ensure!(Path::new(Self::DISK).exists(), Skip("there is no disk"));
        let made = Command::new("mkfs.ext4")
            .arg("-qF")
            .arg(Self::DISK)
            .status();
        let made = made.map_err(|_| Skip("mkfs.ext4 (e2fsprogs) is not here"))?;
        ensure!(made.success(), "mkfs.ext4 has failed: {made}");
        fs::create_dir_all(Self::PLACE).context("cannot make a folder")?;
        own_mounts()
            .and_then(|()| mount(c"/dev/nvme0n1", c"/tmp/disk", c"ext4", 0, c""))
            .context("cannot mount the disk")?;
        Ok(Self)
    }

    /// Returns where a file is on it.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(Self::PLACE).join(name)
    }
}

/// Gives the calling process mounts of its own, so that nobody else sees what it
/// mounts.
fn own_mounts() -> io::Result<()> {
    // SAFETY: takes a plain number.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"")
}

fn mount(
    source: &CStr,
    place: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: &CStr,
) -> io::Result<()> {
    let data = if options.is_empty() {
        ptr::null()
    } else {
        options.as_ptr().cast()
    };
    // SAFETY: all of them are strings that outlive the call, or null.
    let done = unsafe { libc::mount(source.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, data) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
