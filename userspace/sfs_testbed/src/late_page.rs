//! A page that is filled late: a task that reads it sleeps in a page fault until then.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};

use crate::clock::sleep;

/// Requests of userfaultfd(2) and their structures.
mod uffd {
    nix::ioctl_readwrite!(uffd_api, 0xaa, 0x3f, UffdApi);
    nix::ioctl_readwrite!(uffd_register, 0xaa, 0x00, UffdRegister);
    nix::ioctl_readwrite!(uffd_zeropage, 0xaa, 0x04, UffdZeropage);

    /// `struct uffdio_api` of linux/userfaultfd.h.
    #[repr(C)]
    #[derive(Default)]
    pub struct UffdApi {
        pub api: u64,
        pub features: u64,
        pub ioctls: u64,
    }

    /// `struct uffdio_register`.
    #[repr(C)]
    #[derive(Default)]
    pub struct UffdRegister {
        pub start: u64,
        pub length: u64,
        pub mode: u64,
        pub ioctls: u64,
    }

    /// `struct uffdio_zeropage`.
    #[repr(C)]
    #[derive(Default)]
    pub struct UffdZeropage {
        pub start: u64,
        pub length: u64,
        pub mode: u64,
        pub filled: i64,
    }
}

const PAGE: u64 = 4096;

/// A page that cannot be read before it is filled.
pub struct LatePage {
    start: u64,
    faults: OwnedFd,
}

impl LatePage {
    /// Makes a page in the calling process. It stays mapped until the process ends.
    ///
    /// # Errors
    ///
    /// The kernel has no userfaultfd(2), or no memory.
    pub fn new() -> Result<Self> {
        let length = (PAGE as usize).try_into().context("a page is not empty")?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a free address.
        let memory = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) }
            .context("no memory for a page")?;
        let start = memory.as_ptr() as u64;
        // SAFETY: the call takes a number and makes a descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let fd = Errno::result(fd).context("no userfaultfd")?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        let faults = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let mut api = uffd::UffdApi {
            api: 0xaa,
            ..Default::default()
        };
        // SAFETY: the structure has the kernel's layout and outlives the call.
        unsafe { uffd::uffd_api(faults.as_raw_fd(), &raw mut api) }.context("no userfaultfd")?;
        let mut range = uffd::UffdRegister {
            start,
            length: PAGE,
            mode: 1, // UFFDIO_REGISTER_MODE_MISSING
            ..Default::default()
        };
        // SAFETY: the same.
        unsafe { uffd::uffd_register(faults.as_raw_fd(), &raw mut range) }
            .context("userfaultfd refuses the page")?;
        Ok(Self { start, faults })
    }

    /// Returns the page's address.
    pub fn address(&self) -> u64 {
        self.start
    }

    /// Starts a thread that fills the page after `delay`.
    pub fn fill_after(&self, delay: Duration) {
        let faults = self.faults.as_raw_fd();
        let mut page = uffd::UffdZeropage {
            start: self.start,
            length: PAGE,
            ..Default::default()
        };
        std::thread::spawn(move || {
            sleep(delay);
            // SAFETY: the structure has the kernel's layout and outlives the call. If the page is
            // not filled, its reader hangs.
            let _ = unsafe { uffd::uffd_zeropage(faults, &raw mut page) };
        });
    }

    /// Empties the page, so that it can be filled again.
    pub fn empty(&self) {
        // SAFETY: the page belongs to this object, and there are no references into it.
        unsafe {
            libc::madvise(
                ptr::with_exposed_provenance_mut(self.start as usize),
                PAGE as usize,
                libc::MADV_DONTNEED,
            )
        };
    }
}
