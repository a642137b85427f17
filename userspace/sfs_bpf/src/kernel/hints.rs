//! Hints: passes them to the kernel half.

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use zerocopy::IntoBytes;

use super::shared::run_program;
use super::KernelHalf;
use crate::bpf_intf::{sfs_hint, sfs_hint_batch, SFS_HINT_BATCH};

/// Maximum number of hints that the kernel half takes at once.
pub const KERNEL_BATCH: usize = SFS_HINT_BATCH as usize;

/// A hint in the form of the kernel half (`struct sfs_hint`); 0: not given.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelHint {
    /// Process id in the initial pid namespace.
    pub pid: i32,
    /// Reserved.
    pub flags: u32,
    /// When the request arrived, in ns of `CLOCK_MONOTONIC`.
    pub arrived_at: u64,
    /// The function's number: see [`Names`](crate::names::Names).
    pub function: u64,
    /// The CPU time that the invocation will need, in ns.
    pub service_ns: u64,
}

/// Outcome of a batch in the kernel half; the sum is at most its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Hints that began an invocation.
    pub applied: u64,
    /// Hints whose process is not a function.
    pub foreign: u64,
    /// Hints whose process does not exist.
    pub dead: u64,
    /// Hints for an invocation that was already seen, or is over.
    pub stale: u64,
}

impl KernelHalf<'_> {
    /// Applies hints from the platform, at most [`KERNEL_BATCH`] of them.
    ///
    /// # Errors
    ///
    /// The kernel does not run the BPF program for it.
    pub fn apply_hints(&mut self, batch: &[KernelHint]) -> Result<Verdicts> {
        let map = &self.skel.maps.hints;
        for (index, hint) in (0u32..SFS_HINT_BATCH).zip(batch) {
            let value = sfs_hint {
                pid: hint.pid,
                flags: 0,
                arrived_at: hint.arrived_at,
                function: hint.function,
                service_ns: hint.service_ns,
            };
            map.update(&index.to_ne_bytes(), value.as_bytes(), MapFlags::ANY)
                .context("cannot hand a hint to the kernel half")?;
        }
        let mut arguments = sfs_hint_batch {
            nr: batch.len().min(SFS_HINT_BATCH as usize) as u32,
            applied: 0,
            dead: 0,
            foreign: 0,
            stale: 0,
        };
        run_program(&mut self.skel.progs.apply_hints, &mut arguments)
            .context("cannot apply hints")?;
        Ok(Verdicts {
            applied: arguments.applied.into(),
            foreign: arguments.foreign.into(),
            dead: arguments.dead.into(),
            stale: arguments.stale.into(),
        })
    }
}
