//! A run of a BPF program: where it runs, and the section that it is for its task.

use crate::ffi::TaskStruct;
use crate::state::{with, CpuId, State};

/// The task that `current` is on a CPU, and `rq->curr`: in `__schedule()` it is the previous task
/// until the switch.
pub fn current(s: &State, cpu: CpuId) -> *mut TaskStruct {
    let c = &s.cpus[cpu];
    let task = c.higher.runs.or(c.current);
    c.switches_from
        .or_else(|| task.map(|task| s.tasks[task].fields.task))
        .unwrap_or(s.swapper)
}

/// Runs a program on `cpu`. It disables migration of the current task meanwhile, as
/// __bpf_prog_enter() does with CONFIG_PREEMPT_RCU; nested programs do so twice.
pub fn in_program<T>(cpu: CpuId, program: impl FnOnce() -> T) -> T {
    let (section, before) = with(|s| {
        s.callbacks += 1;
        let before = std::mem::replace(&mut s.here, cpu);
        (section_of(s, cpu), before)
    });
    // SAFETY: the count is the task's, whose memory lives as long as the machine.
    unsafe { *section += 1 };
    let result = program();
    // SAFETY: the same.
    unsafe { *section -= 1 };
    with(|s| s.here = before);
    result
}

/// `migration_disabled` of the current task.
fn section_of(s: &State, cpu: CpuId) -> *mut u16 {
    // SAFETY: the task is one of the machine's.
    unsafe { crate::ffi::model_migration_disabled(current(s, cpu)) }
}
