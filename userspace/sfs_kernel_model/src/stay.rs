//! Sections with migration disabled: kernel/sched/core.c, migrate_disable().

use crate::change::change;
use crate::ffi;
use crate::life::Act;
use crate::state::{with, CpuId, State, TaskId};
use crate::task_work::KICK_NS;
use crate::workload::{between, exponential};
use std::collections::VecDeque;

/// The longest section, ns.
const LONG_NS: u64 = 3_000_000;

/// Puts a section into one turn of `habits.stays_of`. Some sections last through the sleep behind
/// the turn. Returns the CPU time of the first part of the turn, which begins as `ns`.
pub fn plan(s: &mut State, task: TaskId, ns: u64, acts: &mut VecDeque<Act>) -> u64 {
    let of = s.habits.stays_of;
    if of == 0 {
        return ns;
    }
    if s.tasks[task].life.stays {
        acts.push_front(Act::Run(ns));
        acts.push_front(Act::StayNoMore);
        return exponential(s.own_random(task), 100_000).min(LONG_NS);
    }
    if between(s.own_random(task), 1, of) > 1 {
        return ns;
    }
    if between(s.own_random(task), 0, 2) == 0 && !s.tasks[task].behaviour.ends() {
        acts.push_back(Act::Stay);
        acts.push_back(Act::Run(1_000));
        return ns;
    }
    let first = between(s.own_random(task), 0, ns.min(LONG_NS));
    let section = between(s.own_random(task), 0, (ns - first).min(LONG_NS));
    for act in [
        Act::Run(ns - first - section),
        Act::StayNoMore,
        Act::Run(section),
        Act::Stay,
    ] {
        acts.push_front(act);
    }
    first
}

/// migrate_disable() of the current task.
pub fn disable(s: &mut State, task: TaskId) {
    s.tasks[task].life.stays = true;
    s.tasks[task].life.stays_since = s.now;
    // SAFETY: the task is one of the machine's.
    unsafe { *ffi::model_migration_disabled(s.tasks[task].fields.task) += 1 };
}

/// migrate_enable() of the current task. If it was off its CPU meanwhile, it gets its mask back
/// (__set_cpus_allowed_ptr() with SCA_MIGRATE_ENABLE).
pub fn enable(cpu: CpuId, task: TaskId) {
    let (pointer, was_off) = with(|s| {
        let pointer = s.tasks[task].fields.task;
        // SAFETY: the task is one of the machine's.
        (pointer, unsafe { ffi::model_is_confined(pointer) })
    });
    let end = |s: &mut State| {
        s.tasks[task].life.stays = false;
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_confine(pointer, -1) };
    };
    if was_off {
        change(cpu, task, end);
    } else {
        with(end);
    }
    // SAFETY: the same. The count falls last, behind the change.
    unsafe { *ffi::model_migration_disabled(pointer) -= 1 };
}

/// migrate_disable_switch(), from Linux 6.19 on: a task in such a section is about to give up its
/// CPU. It stops and goes on first. So does one on its way to user mode, since the program that has
/// kicked it there runs in such a section; once, as it has a single CPU from then on.
pub fn switches_out(cpu: CpuId, task: TaskId) {
    let is_confined =
        with(|s| is_leaving(s, task) && std::mem::take(&mut s.tasks[task].life.may_be_confined));
    if is_confined {
        change(cpu, task, |_| ());
    } else if with(|s| s.odd.of.confines_first) {
        confine(cpu, task);
    }
}

/// The program that has kicked a task on its way to user mode is still in progress. (Not modelled
/// for Linux 6.18, where it changes nothing.)
pub fn is_leaving(s: &State, task: TaskId) -> bool {
    let at = s.tasks[task].life.returned_at;
    s.odd.of.confines_first && at > 0 && s.now - at < KICK_NS
}

/// The same up to Linux 6.18: it comes behind put_prev_task(), so the task is queued twice.
pub fn switched_out(cpu: CpuId, task: TaskId) {
    if with(|s| !s.odd.of.confines_first && s.cpus[cpu].current != Some(task)) {
        confine(cpu, task);
    }
}

/// From now on a task in such a section has one CPU.
fn confine(cpu: CpuId, task: TaskId) {
    let pointer = with(|s| {
        let t = &s.tasks[task];
        // SAFETY: the task is one of the machine's.
        let is_new = || unsafe { !ffi::model_is_confined(t.fields.task) };
        (t.life.stays && is_new()).then_some(t.fields.task)
    });
    if let Some(pointer) = pointer {
        // SAFETY: the same.
        change(cpu, task, |_| unsafe {
            ffi::model_confine(pointer, cpu as i32)
        });
    }
}
