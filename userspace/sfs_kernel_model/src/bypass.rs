//! Bypass: the kernel serves the tasks of a CPU itself, in order of arrival, while the scheduler stays
//! loaded (scx_bypass() of Linux 6.18): the machine is suspended, or a scheduler is about to go.
//! Callbacks that tell of a task are called all the same, those that decide are not.

use crate::change::change;
use crate::helpers;
use crate::race;
use crate::sched::{dispatch_enqueue, resched, GLOBAL, SLICE_BYPASS};
use crate::state::{with, CpuId, Place, State, TaskId};

/// do_enqueue_task(): returns false if the task's CPU is not bypassed.
pub fn enqueues(s: &mut State, task: TaskId, flags: u64) -> bool {
    if !s.cpus[s.tasks[task].cpu].is_bypassed {
        return false;
    }
    s.tasks[task].direct = None;
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.slice = SLICE_BYPASS };
    dispatch_enqueue(s, task, GLOBAL, flags);
    true
}

/// consume_global_dsq(): returns true if a CPU has got a task.
pub fn consume(cpu: CpuId) -> bool {
    with(|s| s.queues.contains_key(&GLOBAL)) && helpers::consume(cpu, GLOBAL)
}

/// scx_bypass() for a CPU: its runnable tasks leave their queues and come back.
pub fn set(cpu: CpuId, on: bool) {
    let _queue = race::run_queue(cpu);
    let here = with(|s| s.here);
    let tasks: Vec<TaskId> = with(|s| {
        s.cpus[cpu].is_bypassed = on;
        let is_there = |&&task: &&TaskId| {
            let t = &s.tasks[task];
            let is_off = match t.place {
                Place::Asleep | Place::Dead => true,
                Place::Moving => t.holding.is_none(),
                _ => false,
            };
            t.cpu == cpu && !is_off
        };
        s.live.iter().filter(is_there).copied().collect()
    });
    for task in tasks {
        with(|s| {
            // The kernel half cannot hold it back before, and has not made it wait.
            s.groups.members[task].is_unaware = true;
            s.tasks[task].waits_since = s.tasks[task].waits_since.map(|_| s.now);
        });
        change(here, task, |_| {});
    }
    with(|s| resched(s, cpu));
}
