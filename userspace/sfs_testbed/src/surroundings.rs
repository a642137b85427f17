//! Surroundings of a loader under test: missing or invalid files, a full disk, little memory, a
//! frozen BPF map, a real disk.

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

use crate::cgroup::Cgroup;
use crate::skip::Skip;

/// Lets the program that `command` starts, and no other, find an empty folder at `place`, or the
/// file `instead`.
pub fn cover(command: &mut Command, place: &CStr, instead: Option<&CStr>) {
    let (place, instead) = (place.to_owned(), instead.map(CStr::to_owned));
    let mount = move || {
        own_mounts()?;
        match &instead {
            Some(file) => mount(file, &place, c"", libc::MS_BIND, c""),
            None => mount(c"none", &place, c"tmpfs", 0, c""),
        }
    };
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(mount) };
}

/// Lets the program that `command` starts be in `group` from its first instruction.
///
/// # Errors
///
/// The group is gone.
pub fn put_into(command: &mut Command, group: &Cgroup) -> Result<()> {
    let mut members = group.open_file("cgroup.procs")?;
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(move || members.write_all(b"0")) };
    Ok(())
}

/// Protects the program that `command` starts from the kernel's OOM killer.
pub fn protect_from_oom_killer(command: &mut Command) {
    let protect = || {
        let mut file = File::options()
            .write(true)
            .open("/proc/self/oom_score_adj")?;
        file.write_all(b"-1000")
    };
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(protect) };
}

/// Freezes the BPF map `name`: the kernel then refuses changes that do not come from a BPF
/// program.
///
/// # Errors
///
/// There is not exactly one such map.
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

/// A small disk of the calling process and its children. It ends with them.
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

    /// Returns the disk's folder.
    pub fn path(&self) -> &Path {
        Path::new(self.path)
    }

    /// Fills the disk up to the last byte.
    ///
    /// # Errors
    ///
    /// A write fails for another reason than a full disk.
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

    /// Frees the filled space.
    ///
    /// # Errors
    ///
    /// The disk was not filled.
    pub fn relieve(&self) -> Result<()> {
        fs::remove_file(self.ballast()).context("the disk was not filled")
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

/// A new file system on the machine's disk for tests. It is unmounted when the calling process
/// ends.
pub struct Ext4;

impl Ext4 {
    const DISK: &str = "/dev/nvme0n1";
    const PLACE: &str = "/tmp/disk";

    /// Makes and mounts the file system.
    ///
    /// # Errors
    ///
    /// A [`Skip`]: there is no such disk, or no `mkfs.ext4`. Or it cannot be mounted.
    pub fn mount() -> Result<Self> {
        ensure!(Path::new(Self::DISK).exists(), Skip("there is no disk"));
        let made = Command::new("mkfs.ext4")
            .arg("-qF")
            .arg(Self::DISK)
            .status();
        let made = made.map_err(|_| Skip("there is no mkfs.ext4 (e2fsprogs)"))?;
        ensure!(made.success(), "mkfs.ext4 has failed: {made}");
        fs::create_dir_all(Self::PLACE).context("cannot make a folder")?;
        own_mounts()
            .and_then(|()| mount(c"/dev/nvme0n1", c"/tmp/disk", c"ext4", 0, c""))
            .context("cannot mount the disk")?;
        Ok(Self)
    }

    /// Returns the path of a file on the disk.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(Self::PLACE).join(name)
    }
}

/// Gives the calling process its own mount namespace, so that no other process sees its mounts.
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
    // SAFETY: all pointers are strings that outlive the call, or null.
    let done = unsafe { libc::mount(source.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, data) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
