//! What only some machines have ([`Oddities`]), as they live: hints come, and memory lacks.

use crate::loader_ffi as ffi;
use crate::program::in_program;
use crate::state::{with, CpuId, State, TaskId, FIRST_PID};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sfs_kernel_draws::numbers::between;
pub use sfs_kernel_draws::oddities::Oddities;

/// ns in a millisecond.
const MS: u64 = 1_000_000;
/// SFS_FUNCTION_NAMED.
const NAMED: u64 = 1 << 63;
/// Hints that one call applies at most here; the loader's limit is SFS_HINT_BATCH.
const MOST_HINTS: u64 = 6;

/// The same with their random numbers.
#[derive(Debug)]
pub struct Odd {
    /// What the machine has.
    pub of: Oddities,
    /// The scheduler is loaded: from now on memory may lack.
    pub is_loaded: bool,
    random: ChaCha8Rng,
}

impl Odd {
    /// A machine with these, and random numbers for them.
    pub fn new(of: Oddities, random: ChaCha8Rng) -> Self {
        Self {
            of,
            is_loaded: false,
            random,
        }
    }
}

impl Default for Odd {
    fn default() -> Self {
        Self::new(Oddities::default(), ChaCha8Rng::seed_from_u64(0))
    }
}

/// Returns true if there is no memory for what is allocated now.
pub fn lacks_memory(s: &mut State) -> bool {
    let of = s.odd.of.no_memory_of;
    s.odd.is_loaded && of > 0 && between(&mut s.odd.random, 1, of) == 1
}

/// A CPU for a loader that is not there: one that idles, since whoever calls the kernel half has
/// its CPU.
pub fn idle_cpu(s: &State) -> Option<CpuId> {
    let is_free = |cpu: &CpuId| {
        let cpu = &s.cpus[*cpu];
        cpu.current.is_none() && cpu.higher.runs.is_none() && cpu.switches_from.is_none()
    };
    (0..s.cpus.len()).find(is_free)
}

/// The loader, on `cpu`, calls the kernel half with some hints. Not within [`with`].
pub fn apply_hints(cpu: CpuId) {
    let nr = with(|s| {
        let nr = between(&mut s.odd.random, 1, MOST_HINTS) as u32;
        for number in 0..nr {
            let hint = draw(s);
            let map = ffi::maps().hints as usize;
            let map = s.maps.get_mut(&map).expect("the map is there");
            // SAFETY: the map has keys and values of these sizes.
            unsafe { map.update((&raw const number).cast(), (&raw const hint).cast(), 0) };
        }
        nr
    });
    let mut batch = ffi::HintBatch {
        nr,
        ..ffi::HintBatch::default()
    };
    in_program(cpu, || {
        // SAFETY: `batch` lives during the call.
        unsafe { ffi::apply_hints(&mut batch) }
    });
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
fn draw(s: &mut State) -> ffi::Hint {
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
    ffi::Hint {
        pid: FIRST_PID + task as i32,
        flags: 0,
        arrived_at: [0, now - ago.min(now)][between(random, 0, 1) as usize],
        function: [0, name][between(random, 0, 1) as usize],
        service_ns: [0, between(random, 1, 500) * MS][between(random, 0, 1) as usize],
    }
}
