//! Ring buffers, by which the kernel half sends events to the loader: kernel/bpf/ringbuf.c.

use std::collections::VecDeque;

/// BPF_RB_NO_WAKEUP.
const NO_WAKEUP: u64 = 1;
/// BPF_RB_FORCE_WAKEUP.
const FORCE_WAKEUP: u64 = 2;
/// BPF_RINGBUF_HDR_SZ: what stands before each record, in bytes.
const HEADER: usize = 8;

/// A ring buffer with one reader.
#[derive(Debug)]
pub struct Ring {
    /// Bytes that it has room for.
    size: usize,
    /// Records that nobody has read yet.
    records: VecDeque<Vec<u8>>,
    /// Bytes that they take.
    used: usize,
    /// Records that found no room.
    lost: u64,
}

impl Ring {
    /// An empty one with room for `size` bytes.
    pub fn new(size: usize) -> Self {
        Self {
            size,
            records: VecDeque::new(),
            used: 0,
            lost: 0,
        }
    }

    /// bpf_ringbuf_output(). Returns whether it wakes up the reader; `None`: there is no room.
    pub fn output(&mut self, record: &[u8], flags: u64) -> Option<bool> {
        let bytes = (record.len() + HEADER).next_multiple_of(8);
        // bpf_ringbuf_has_space(): one byte always remains free.
        if self.used + bytes > self.size - 1 {
            self.lost += 1;
            return None;
        }
        // bpf_ringbuf_commit(): the reader sleeps only if it has read all that was before.
        let caught_up = self.records.is_empty();
        self.used += bytes;
        self.records.push_back(record.to_vec());
        Some(flags & FORCE_WAKEUP != 0 || (caught_up && flags & NO_WAKEUP == 0))
    }

    /// BPF_RB_AVAIL_DATA: the bytes that are not read yet.
    pub fn unread(&self) -> usize {
        self.used
    }

    /// Records that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Reads all records, in order.
    pub fn consume(&mut self) -> Vec<Vec<u8>> {
        self.used = 0;
        self.records.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_loses_records() {
        let mut ring = Ring::new(128);
        let taken = (0..6).filter(|_| ring.output(&[1; 24], 0).is_some());
        // 32 bytes each, and 128 bytes never fill up.
        assert_eq!((taken.count(), ring.lost(), ring.unread()), (3, 3, 96));
        assert_eq!(ring.consume().len(), 3);
        assert_eq!(ring.output(&[1; 24], 0), Some(true));
    }

    #[test]
    fn only_a_reader_that_has_read_all_is_woken_up() {
        let mut ring = Ring::new(1024);
        assert_eq!(ring.output(&[1], NO_WAKEUP), Some(false));
        assert_eq!(ring.output(&[1], 0), Some(false));
        assert_eq!(ring.output(&[1], FORCE_WAKEUP), Some(true));
        ring.consume();
        assert_eq!(ring.output(&[1], 0), Some(true));
    }
}
