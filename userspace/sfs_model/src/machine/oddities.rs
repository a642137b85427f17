//! What only some machines have, and what nobody asks for in most runs: shards, hints, too little
//! memory, a dump.

use super::hints;
use super::starts::{stream, Settings, BYPASS_STREAM, KERNEL_STREAM, ODDITIES_STREAM};
use super::Machine;
use crate::loader;
use sfs_kernel_model::ffi;
use sfs_kernel_model::oddities::{Odd, Oddities};
use sfs_kernel_model::race;
use sfs_kernel_model::reader::Nudge;
use sfs_kernel_model::state::{with, Event};
use sfs_kernel_model::workload::{exponential, Workload};

impl Machine {
    /// The platform tells of requests, and will again.
    pub(super) fn hint(&mut self, event: Event) {
        with(|s| {
            let delay = exponential(&mut self.hints, s.odd.of.hints_ns);
            s.after(delay, Event::Hint);
        });
        if loader::is_there() {
            race::happens(event, None, || loader::nudged(Nudge::Hinted));
        } else if let Some(cpu) = with(|s| hints::idle_cpu(s)) {
            race::happens(event, Some(cpu), move || hints::apply_hints(cpu));
        }
    }
}

/// What only some machines have: not those that compare weights.
pub(super) fn drawn(workload: &Workload, seed: u64, settings: &Settings) -> Odd {
    let mut random = stream(seed, ODDITIES_STREAM);
    let drawn = match settings.oddities {
        Some(given) => given,
        None if workload.groups.is_steady => Oddities::default(),
        None => Oddities::draw(&mut random, workload.cpus)
            .with_bypasses(&mut stream(seed, BYPASS_STREAM))
            .with_a_kernel(&mut stream(seed, KERNEL_STREAM)),
    };
    Odd::new(settings.limits.apply_to_oddities(drawn), random)
}

/// Somebody asks for a dump (SysRq-D), which reads everything and changes nothing.
pub(super) fn dump() {
    let live: Vec<_> = with(|s| {
        let live = s.live.iter();
        live.map(|&task| s.tasks[task].fields.task).collect()
    });
    // SAFETY: the machine is there.
    unsafe { ffi::model_dump() };
    for task in live {
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_dump_task(task) };
    }
}
