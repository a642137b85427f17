//! Hints from a platform, which the loader applies.

use sfs_kernel_model::loader_ffi as ffi;
use sfs_kernel_model::program::in_program;
use sfs_kernel_model::state::{with, CpuId, State, TaskId, FIRST_PID};
use sfs_kernel_model::workload::between;
use sfs_kernel_rules::hints as rules;

/// ns in a millisecond.
const MS: u64 = 1_000_000;
/// SFS_FUNCTION_NAMED.
const NAMED: u64 = 1 << 63;
/// Hints that one call applies at most here; the loader's limit is SFS_HINT_BATCH.
const MOST_HINTS: u64 = 6;

/// `struct sfs_hint`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Hint {
    /// Of a process.
    pub pid: i32,
    /// Nothing.
    pub flags: u32,
    /// When the request came, ns of CLOCK_MONOTONIC; 0: now.
    pub arrived_at: u64,
    /// With SFS_FUNCTION_NAMED; 0: not named.
    pub function: u64,
    /// CPU time that it will need, ns; 0: unknown.
    pub service_ns: u64,
}

impl Hint {
    fn for_rules(&self) -> rules::Hint {
        rules::Hint {
            pid: self.pid,
            arrived_at: self.arrived_at,
            function: self.function,
            service_ns: self.service_ns,
        }
    }
}

/// `struct sfs_hint_batch`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct HintBatch {
    /// In: hints.
    pub nr: u32,
    /// Out: applied.
    pub applied: u32,
    /// Out: for a process that is not there.
    pub dead: u32,
    /// Out: for a process that belongs to no function.
    pub foreign: u32,
    /// Out: for a process that started after the request.
    pub stale: u32,
}

extern "C" {
    /// Applies the hints in the map. Returns 0.
    #[link_name = "apply_hints"]
    fn ffi_apply_hints(batch: *mut HintBatch) -> i32;
}

/// A CPU for a loader that is not there: one that idles, since whoever calls the kernel half has
/// its CPU.
pub(super) fn idle_cpu(s: &State) -> Option<CpuId> {
    let is_free = |cpu: &CpuId| {
        let cpu = &s.cpus[*cpu];
        cpu.current.is_none() && cpu.higher.runs.is_none() && cpu.switches_from.is_none()
    };
    (0..s.cpus.len()).find(is_free)
}

/// The loader, on `cpu`, calls the kernel half with some hints. Not within [`with`].
pub(crate) fn apply_hints(cpu: CpuId) {
    let given = with(|s| {
        let nr = between(&mut s.odd.random, 1, MOST_HINTS) as u32;
        let mut given = Vec::new();
        for number in 0..nr {
            let hint = draw(s);
            given.push(hint);
            let map = ffi::maps().hints as usize;
            let map = s.maps.get_mut(&map).expect("the map is there");
            // SAFETY: the map has keys and values of these sizes.
            unsafe { map.update((&raw const number).cast(), (&raw const hint).cast(), 0) };
        }
        given
    });
    let nr = given.len() as u32;
    let given: Vec<rules::Hint> = given.iter().map(Hint::for_rules).collect();
    let before = rules::before(&given);
    let mut batch = HintBatch {
        nr,
        ..HintBatch::default()
    };
    in_program(cpu, || {
        // SAFETY: `batch` lives during the call.
        unsafe { ffi_apply_hints(&mut batch) }
    });
    if let Some(before) = before.filter(|_| batch.stale == 0) {
        rules::after(&before, (batch.applied, batch.dead, batch.foreign));
    }
    let done = batch.applied + batch.dead + batch.foreign + batch.stale;
    if done != nr {
        with(|s| {
            s.finding(format!(
                "{nr} hints are given, and the kernel half counts {batch:?}"
            ))
        });
    }
}

/// A hint for a process that is there, that has ended, or that never was.
fn draw(s: &mut State) -> Hint {
    let now = s.monotonic();
    let nr_tasks = s.tasks.len() as u64;
    let live: Vec<TaskId> = s.live.iter().copied().collect();
    let random = &mut s.odd.random;
    let any = between(random, 0, nr_tasks + 2) as TaskId;
    let task = match live.len() as u64 {
        0 => any,
        _ if between(random, 0, 9) == 0 => any,
        count => live[between(random, 0, count - 1) as usize],
    };
    let ago = between(random, 0, 50 * MS);
    let name = NAMED | between(random, 1, 4);
    Hint {
        pid: FIRST_PID + task as i32,
        flags: 0,
        arrived_at: [0, now - ago.min(now)][between(random, 0, 1) as usize],
        function: [0, name][between(random, 0, 1) as usize],
        service_ns: [0, between(random, 1, 500) * MS][between(random, 0, 1) as usize],
    }
}
