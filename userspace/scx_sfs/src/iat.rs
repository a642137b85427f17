//! The IAT map: arrivals that the kernel half writes and the loader reads from
//! shared memory, without a system call.

use std::os::fd::AsFd;
use std::sync::atomic::{fence, Ordering};

use anyhow::{Context, Result};
use memmap2::{Mmap, MmapOptions};

use crate::bpf_intf::{sfs_arrival, SFS_IAT_SLOTS};

/// The IAT map, mapped into memory, and how far it has been read.
pub struct IatMap {
    map: Mmap,
    read: u64,
}

impl IatMap {
    /// Maps the BPF map behind `fd`.
    ///
    /// # Errors
    ///
    /// The kernel does not map it.
    pub fn new(fd: impl AsFd) -> Result<Self> {
        let length = SFS_IAT_SLOTS as usize * size_of::<sfs_arrival>();
        let fd = fd.as_fd();
        // SAFETY: the map belongs to this process, so nobody shrinks it. It is
        // written while it is mapped; read_slot() reads it as volatile words.
        let map = unsafe { MmapOptions::new().len(length).map(&fd) }
            .context("cannot map the IAT map into memory")?;
        Ok(Self { map, read: 0 })
    }

    /// Appends the arrivals up to number `total` that have not been read, in ns,
    /// to `arrivals`. Those that have been overwritten meanwhile are left out.
    pub fn read_to(&mut self, total: u64, arrivals: &mut Vec<u64>) {
        let oldest = total.saturating_sub(u64::from(SFS_IAT_SLOTS));
        for number in self.read.max(oldest)..total {
            arrivals.extend(self.read_slot(number));
        }
        self.read = self.read.max(total);
    }

    /// Returns arrival `number` (from 0), unless its slot holds another one.
    fn read_slot(&self, number: u64) -> Option<u64> {
        let slot = (number % u64::from(SFS_IAT_SLOTS)) as usize;
        let arrival = self.map.as_ptr().cast::<sfs_arrival>().wrapping_add(slot);
        // SAFETY: `slot` is below SFS_IAT_SLOTS, the length of the mapping, which
        // is page-aligned. The kernel half writes whole words; reading seq before
        // and after tells whether `at` belongs to this arrival.
        unsafe {
            let before = (&raw const (*arrival).seq).read_volatile();
            fence(Ordering::Acquire);
            let at = (&raw const (*arrival).at).read_volatile();
            fence(Ordering::Acquire);
            let after = (&raw const (*arrival).seq).read_volatile();
            (before == number + 1 && after == before).then_some(at)
        }
    }
}
