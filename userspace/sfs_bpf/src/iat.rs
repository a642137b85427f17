//! The IAT map: the kernel half writes arrivals, and the loader reads them from shared memory
//! without a system call.

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::atomic::{fence, AtomicU64, Ordering};

use anyhow::{Context, Result};
use memmap2::{MmapOptions, MmapRaw};

use crate::bpf_intf::{sfs_arrival, SFS_IAT_SLOTS};

/// The memory-mapped IAT map, and how far it has been read.
pub struct IatMap {
    map: MmapRaw,
    read: u64,
}

impl IatMap {
    /// Maps the BPF map behind `fd`.
    ///
    /// # Errors
    ///
    /// The kernel refuses to map it.
    pub fn new(fd: impl AsFd) -> Result<Self> {
        let length = SFS_IAT_SLOTS as usize * size_of::<sfs_arrival>();
        let fd = fd.as_fd();
        let map = MmapOptions::new().len(length).map_raw_read_only(&fd);
        Ok(Self {
            map: map.context("cannot map the IAT map into memory")?,
            read: 0,
        })
    }

    /// Appends the unread arrivals up to number `total` to `arrivals`, in ns. Arrivals
    /// overwritten in the meantime are skipped.
    pub fn read_to(&mut self, total: u64, arrivals: &mut Vec<u64>) {
        let oldest = total.saturating_sub(u64::from(SFS_IAT_SLOTS));
        for number in self.read.max(oldest)..total {
            arrivals.extend(self.read_slot(number));
        }
        self.read = self.read.max(total);
    }

    /// Returns arrival `number` (from 0), or None if its slot holds another one.
    fn read_slot(&self, number: u64) -> Option<u64> {
        let slot = (number % u64::from(SFS_IAT_SLOTS)) as usize;
        // Reading seq before and after shows whether `at` belongs to this arrival.
        let before = self.read_word(slot, offset_of!(sfs_arrival, seq));
        fence(Ordering::Acquire);
        let at = self.read_word(slot, offset_of!(sfs_arrival, at));
        fence(Ordering::Acquire);
        let after = self.read_word(slot, offset_of!(sfs_arrival, seq));
        (before == number + 1 && after == before).then_some(at)
    }

    /// Reads a word of `slot` (below `SFS_IAT_SLOTS`), which the kernel half may write
    /// concurrently. `offset` is that of a field of `sfs_arrival`.
    fn read_word(&self, slot: usize, offset: usize) -> u64 {
        let place = slot * size_of::<sfs_arrival>() + offset;
        let word = self.map.as_mut_ptr().wrapping_add(place).cast::<u64>();
        // SAFETY: the address is inside the mapping. The mapping is page-aligned and belongs to
        // this process, so nobody shrinks it. All fields are whole words, and the kernel half
        // writes each in one piece. Relaxed loads of a word are allowed on read-only memory.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zerocopy::IntoBytes;

    /// Returns a map in which slot `i` holds `arrival(i)`.
    fn map_of(arrival: impl Fn(u64) -> sfs_arrival) -> IatMap {
        let mut file = tempfile::tempfile().unwrap();
        for slot in 0..u64::from(SFS_IAT_SLOTS) {
            file.write_all(arrival(slot).as_bytes()).unwrap();
        }
        IatMap::new(&file).unwrap()
    }

    fn read(map: &mut IatMap, total: u64) -> Vec<u64> {
        let mut arrivals = Vec::new();
        map.read_to(total, &mut arrivals);
        arrivals
    }

    #[test]
    fn each_arrival_is_read_once() {
        let mut map = map_of(|slot| sfs_arrival {
            seq: slot + 1,
            at: 100 + slot,
        });
        assert_eq!(read(&mut map, 3), [100, 101, 102]);
        assert!(read(&mut map, 3).is_empty());
        assert_eq!(read(&mut map, 5), [103, 104]);
    }

    #[test]
    fn overwritten_arrivals_are_left_out() {
        let slots = u64::from(SFS_IAT_SLOTS);
        // Slot 0 has been written a second time, slot 1 a third time.
        let mut map = map_of(|slot| sfs_arrival {
            seq: slot + 1 + slots * [1, 2].get(slot as usize).unwrap_or(&0),
            at: slot,
        });
        let arrivals = read(&mut map, slots + 2);
        assert_eq!(arrivals.len() as u64, slots - 1);
        assert_eq!(arrivals.first(), Some(&2));
        assert_eq!(arrivals.last(), Some(&0));
    }
}
