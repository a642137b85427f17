//! The core of sched_ext, after kernel/sched/ext.c of Linux 6.18: the names of functions are
//! those there. Callbacks run at once and take no time. No function here holds the state while
//! it calls the kernel half.

use crate::bypass;
use crate::ffi::{self, TaskStruct};
use crate::groups;
use crate::higher;
use crate::lines;
use crate::program::{current, in_program};
use crate::promises;
use crate::race;
use crate::replay;
use crate::state::{with, CpuId, Event, Place, State, TaskId};
use crate::stay;
use crate::task_work;
use crate::tasks::{finish, sleeps, DEAD};
use crate::timeline::{tell_run, Entry};
use crate::virtual_time;
pub use sfs_kernel_objects::flags::*;
use std::ptr;

/// TASK_INTERRUPTIBLE.
const SLEEPS: u32 = 1;
/// An interrupt reaches another CPU after at most so long.
pub const IPI_NS: u64 = 2_000;

/// Calls a callback of the kernel half for a task, on `cpu`.
pub fn call<T>(cpu: CpuId, task: TaskId, callback: impl FnOnce(*mut TaskStruct) -> T) -> T {
    let pointer = with(|s| s.tasks[task].fields.task);
    let result = in_program(cpu, || callback(pointer));
    groups::charged(task);
    result
}

/// Calls `select_cpu` or `enqueue`, in which the task may be inserted into a queue at once.
fn call_direct<T>(cpu: CpuId, task: TaskId, callback: impl FnOnce(*mut TaskStruct) -> T) -> T {
    with(|s| s.directs = Some(task));
    let result = call(cpu, task, callback);
    with(|s| s.directs = None);
    result
}

/// try_to_wake_up() and wake_up_new_task(): `cpu` wakes a task up.
pub fn wake_up(cpu: CpuId, task: TaskId, is_new: bool) {
    wake_up_with(cpu, task, if is_new { WAKE_FORK } else { WAKE_TTWU });
}

/// __wake_up_sync_key(): the current task of `cpu` wakes a task up, and is about to sleep.
pub fn wake_up_sync(cpu: CpuId, task: TaskId) {
    wake_up_with(cpu, task, WAKE_TTWU | WAKE_SYNC);
}

fn wake_up_with(cpu: CpuId, task: TaskId, flags: u64) {
    let is_new = flags & WAKE_FORK != 0;
    let _waking = race::wakes(task);
    if !with(|s| sleeps(s, task)) {
        return; // somebody else was earlier
    }
    let (previous, is_pinned) = with(|s| {
        let t = &mut s.tasks[task];
        t.place = Place::Moving;
        t.direct = None;
        // SAFETY: the task's memory lives as long as the machine.
        let pinned = unsafe {
            *t.fields.state = 0;
            *t.fields.nr_cpus == 1 || t.life.stays
        };
        (t.cpu, pinned)
    });
    let chosen = if is_pinned || with(|s| s.cpus[previous].is_bypassed) {
        previous
    } else {
        // SAFETY: the task is one of the machine's.
        call_direct(cpu, task, |p| unsafe {
            ffi::sfs_select_cpu(p, previous as i32, flags)
        }) as usize
    };
    let chosen = with(|s| {
        let fits = chosen < s.cpus.len() && s.may_run(task, chosen);
        if !fits && chosen != previous {
            s.finding(format!(
                "select_cpu chose CPU {chosen} for task {task}, which may not run there"
            ));
        }
        let chosen = if fits { chosen } else { fallback(s, task) };
        s.tasks[task].cpu = chosen;
        s.tasks[task].waits_since = Some(s.now);
        if !is_new {
            promises::wakes(s, task);
        }
        chosen
    });
    let _queue = race::run_queue(chosen); // ttwu_queue(), or wake_up_new_task()
    let flags = if is_new { 0 } else { ENQ_WAKEUP };
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_runnable(p, flags) });
    set_queued(task, true);
    do_enqueue_task(cpu, task, flags);
    // wakeup_preempt(): an idle task gives way to any other.
    with(|s| {
        if s.cpus[chosen].current.is_none() {
            resched(s, chosen);
        }
    });
}

/// select_fallback_rq(): the affinity has changed during the sleep, or the task was forked on a
/// CPU where it may not run.
fn fallback(s: &State, task: TaskId) -> CpuId {
    let mut cpus = 0..s.cpus.len();
    cpus.find(|&cpu| s.may_run(task, cpu))
        .expect("a CPU for each task")
}

fn set_queued(task: TaskId, queued: bool) {
    with(|s| {
        let flags = s.tasks[task].fields.scx_flags;
        // SAFETY: the task's memory lives as long as the machine.
        unsafe {
            *flags = if queued {
                *flags | QUEUED
            } else {
                *flags & !QUEUED
            }
        };
    });
}

/// do_enqueue_task(): the run queue of the task's CPU is locked by `cpu`.
pub fn do_enqueue_task(cpu: CpuId, task: TaskId, flags: u64) {
    if with(|s| bypass::enqueues(s, task, flags)) {
        return;
    }
    if with(|s| s.tasks[task].direct.is_none()) {
        // SAFETY: the task is one of the machine's.
        call_direct(cpu, task, |p| unsafe { ffi::sfs_enqueue(p, flags) });
    }
    virtual_time::check(task);
    with(|s| match s.tasks[task].direct.take() {
        Some((queue, enqueue)) => dispatch_enqueue(s, task, queue, enqueue | flags),
        None => s.finding(format!("enqueue() has put task {task} nowhere")),
    });
}

/// dispatch_enqueue(): puts a task into a queue.
pub fn dispatch_enqueue(s: &mut State, task: TaskId, queue: u64, flags: u64) {
    let number = s.number();
    s.tasks[task].queued_as = number;
    if queue == LOCAL || queue & LOCAL_ON == LOCAL_ON {
        let cpu = match queue {
            LOCAL => s.tasks[task].cpu,
            _ => (queue & 0xffff_ffff) as usize,
        };
        if cpu >= s.cpus.len() || !s.may_run(task, cpu) {
            s.finding(format!(
                "task {task} was sent to CPU {cpu}, where it may not run"
            ));
            return;
        }
        return local_enqueue(s, task, cpu, flags);
    }
    let fields = s.tasks[task].fields;
    let Some(dsq) = s.queues.get_mut(&queue) else {
        return s.finding(format!("there is no queue {queue:#x} for task {task}"));
    };
    let by_vtime = flags & ENQ_PRIQ != 0;
    let mixes = dsq.mixes(by_vtime);
    let key = if by_vtime {
        // SAFETY: the task's memory lives as long as the machine.
        dsq.push_by_vtime(task, unsafe { *fields.vtime })
    } else {
        dsq.push(task, flags & (ENQ_HEAD | ENQ_PREEMPT) != 0)
    };
    if mixes {
        s.finding(format!(
            "queue {queue:#x} has tasks with and without a virtual time"
        ));
    }
    lines::queue(s, queue, true);
    s.tasks[task].key = key;
    s.tasks[task].place = Place::Queue(queue);
    s.tell(Entry::Queued(task, queue));
}

/// Puts a task into a CPU's local queue, and makes the CPU look at it if it idles.
fn local_enqueue(s: &mut State, task: TaskId, cpu: CpuId, flags: u64) {
    s.tasks[task].cpu = cpu;
    s.tasks[task].place = Place::Local;
    s.tell(Entry::Local(task, cpu));
    if flags & (ENQ_HEAD | ENQ_PREEMPT) != 0 {
        s.cpus[cpu].local.push_front(task);
    } else {
        s.cpus[cpu].local.push_back(task);
    }
    if higher::has(s, cpu) {
        return;
    }
    if flags & ENQ_PREEMPT != 0 {
        if let Some(current) = s.cpus[cpu].current.filter(|&current| current != task) {
            // SAFETY: the task's memory lives as long as the machine.
            unsafe { *s.tasks[current].fields.slice = 0 };
            resched(s, cpu);
        }
    }
    if s.cpus[cpu].current.is_none() {
        resched(s, cpu);
    }
}

/// resched_curr(): a CPU is to look for another task, soon.
pub fn resched(s: &mut State, cpu: CpuId) {
    if !s.cpus[cpu].resched {
        s.cpus[cpu].resched = true;
        let delay = if cpu == s.here { 0 } else { IPI_NS };
        s.after(delay, Event::Resched(cpu));
    }
}

/// kick_one_cpu(): a kick arrives.
pub fn kicked(cpu: CpuId, flags: u64) {
    let _queue = race::run_queue(cpu);
    with(|s| match s.cpus[cpu].current {
        _ if higher::has(s, cpu) => {}
        None => resched(s, cpu),
        Some(_) if flags & KICK_IDLE != 0 => {}
        Some(current) => {
            if flags & KICK_PREEMPT != 0 {
                // SAFETY: the task's memory lives as long as the machine.
                unsafe { *s.tasks[current].fields.slice = 0 };
            }
            resched(s, cpu);
        }
    });
}

/// update_curr_scx(): counts the CPU time of a CPU's task.
pub fn update_curr(s: &mut State, cpu: CpuId) {
    let now = s.now;
    let Some(current) = s.cpus[cpu].current else {
        return;
    };
    let delta = now - std::mem::replace(&mut s.cpus[cpu].counted_to, now);
    let task = &mut s.tasks[current];
    task.left_ns = task.left_ns.saturating_sub(delta);
    let fields = task.fields;
    // SAFETY: the task's memory lives as long as the machine.
    unsafe {
        *fields.cpu_time_ns += delta;
        if *fields.slice != SLICE_INF {
            *fields.slice = (*fields.slice).saturating_sub(delta);
        }
    }
    promises::count(s, current, delta);
}

/// scheduler_tick().
pub fn tick(cpu: CpuId) {
    let _queue = race::run_queue(cpu);
    let changes = race::group_changes();
    let Some(current) = with(|s| {
        update_curr(s, cpu);
        s.cpus[cpu].current
    }) else {
        return;
    };
    if with(|s| s.cpus[cpu].is_bypassed) {
        // SAFETY: the task's memory lives as long as the machine.
        with(|s| unsafe { *s.tasks[current].fields.slice = 0 });
    } else {
        // SAFETY: the task is one of the machine's.
        call(cpu, current, |p| unsafe { ffi::sfs_tick(p) });
        groups::ticked(current, changes);
    }
    with(|s| {
        if slice(s, current) == 0 {
            resched(s, cpu);
        }
    });
}

/// The rest of a task's slice, ns.
pub fn slice(s: &State, task: TaskId) -> u64 {
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.slice }
}

/// sys_sched_yield(): yield_task_scx(), then schedule().
pub fn yield_now(cpu: CpuId, task: TaskId) {
    let queue = race::run_queue(cpu);
    let pointer = with(|s| s.tasks[task].fields.task);
    // SAFETY: the task is one of the machine's. It is charged when it leaves its CPU.
    in_program(cpu, || unsafe { ffi::sfs_yield(pointer, ptr::null_mut()) });
    drop(queue);
    schedule(cpu);
}

/// __schedule(): a CPU gets its next task. It forgets requests to look for another one which
/// come meanwhile (clear_tsk_need_resched()).
pub fn schedule(cpu: CpuId) {
    if let Some(task) = with(|s| s.cpus[cpu].current) {
        with(|s| set_state(s, task));
        stay::switches_out(cpu, task);
    }
    let queue = race::run_queue(cpu);
    with(|s| s.cpus[cpu].resched = false);
    if with(|s| higher::keeps(s, cpu)) {
        return;
    }
    let previous = with(|s| {
        s.cpus[cpu].switches_from = Some(current(s, cpu));
        s.cpus[cpu].current
    });
    let on_cpu = previous.map(race::on_cpu);
    let left = switch(cpu);
    with(|s| s.cpus[cpu].resched = false);
    if let Some(task) = previous {
        stay::switched_out(cpu, task);
    }
    with(|s| s.cpus[cpu].switches_from = None);
    drop((on_cpu, queue)); // finish_task_switch()
    if let Some(task) = left {
        finish(task);
    }
}

/// Picks the next task. Returns the previous one if it sleeps.
fn switch(cpu: CpuId) -> Option<TaskId> {
    let previous = with(|s| {
        s.here = cpu;
        update_curr(s, cpu);
        s.cpus[cpu].current
    });
    let stays = previous.filter(|&task| !with(|s| s.tasks[task].stops));
    if let Some(task) = previous.filter(|_| stays.is_none()) {
        dequeue(cpu, task);
    }
    let keep = balance(cpu, stays);
    if higher::pick(cpu, previous, stays) {
        return previous.filter(|_| stays.is_none());
    }
    let next = match keep {
        true => stays,
        false => with(|s| s.cpus[cpu].local.front().copied()),
    };
    if let Some(task) = next.filter(|_| next == stays) {
        with(|s| {
            if slice(s, task) == 0 {
                // SAFETY: the task's memory lives as long as the machine.
                unsafe { *s.tasks[task].fields.slice = SLICE_DFL };
            }
        });
        return None;
    }
    if let Some(task) = stays {
        put_prev(cpu, task, next.is_none());
        with(|s| replay::preempted(s, task));
    }
    set_next(cpu, next, previous.is_none());
    previous.filter(|_| stays.is_none())
}

/// A task that goes to sleep, or ends, says so before its CPU looks for another one.
fn set_state(s: &mut State, task: TaskId) {
    if !s.tasks[task].stops {
        return;
    }
    // A task that is killed just now exits first, on its way to user mode.
    let exits = !s.groups.are_there() || s.groups.members[task].exits;
    let state = if s.tasks[task].behaviour.ends() && exits {
        DEAD
    } else {
        SLEEPS
    };
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.state = state };
}

/// dequeue_task_scx(): the current task goes to sleep, or ends.
fn dequeue(cpu: CpuId, task: TaskId) {
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, false) });
    // SAFETY: the same.
    call(cpu, task, |p| unsafe { ffi::sfs_quiescent(p, DEQ_SLEEP) });
    set_queued(task, false);
    with(|s| s.tasks[task].place = Place::Asleep);
}

/// balance_one(): fills the local queue. Returns true if the previous task keeps the CPU.
fn balance(cpu: CpuId, stays: Option<TaskId>) -> bool {
    higher::acquire(cpu);
    let bypassed = with(|s| s.cpus[cpu].is_bypassed);
    if !bypassed && stays.is_some_and(|task| with(|s| slice(s, task) > 0)) {
        return true;
    }
    if with(|s| !s.cpus[cpu].local.is_empty()) || bypass::consume(cpu) {
        return false;
    }
    if bypassed {
        return stays.is_some();
    }
    loop {
        let pointer = with(|s| {
            s.in_dispatch = true;
            stays.map_or(ptr::null_mut(), |task| s.tasks[task].fields.task)
        });
        in_program(cpu, || {
            // SAFETY: the task is one of the machine's, or null as on an idle CPU.
            unsafe { ffi::sfs_dispatch(cpu as i32, pointer) }
        });
        if let Some(task) = stays {
            groups::charged(task);
        }
        let inserted = with(|s| {
            s.in_dispatch = false;
            flush_dispatch_buf(s, cpu)
        });
        if stays.is_some_and(|task| with(|s| slice(s, task) > 0)) {
            return true;
        }
        if with(|s| !s.cpus[cpu].local.is_empty()) {
            return false;
        }
        if inserted == 0 {
            // With SCX_OPS_ENQ_LAST the last task is queued (put_prev_task_scx()).
            return false;
        }
    }
}

/// flush_dispatch_buf(). Returns how many tasks were inserted.
pub fn flush_dispatch_buf(s: &mut State, cpu: CpuId) -> usize {
    let inserted = std::mem::take(&mut s.cpus[cpu].dispatched);
    for &(task, queue, flags) in &inserted {
        dispatch_enqueue(s, task, queue, flags);
    }
    inserted.len()
}

/// put_prev_task_scx(): the previous task is still runnable, and another one follows, or (`is_last`)
/// none.
fn put_prev(cpu: CpuId, task: TaskId, is_last: bool) {
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, true) });
    let has_slice = with(|s| {
        let t = &mut s.tasks[task];
        t.place = Place::Moving;
        t.waits_since = Some(s.now);
        // The next task is taken by its name, so this one may come before it.
        s.cpus[cpu].current = None;
        promises::preempted(s, task);
        slice(s, task) > 0 && !s.cpus[cpu].is_bypassed
    });
    if has_slice {
        with(|s| dispatch_enqueue(s, task, LOCAL, ENQ_HEAD));
    } else {
        do_enqueue_task(cpu, task, if is_last { ENQ_LAST } else { 0 });
    }
}

/// set_next_task_scx(), or the idle task.
fn set_next(cpu: CpuId, next: Option<TaskId>, was_idle: bool) {
    with(|s| {
        s.cpus[cpu].turn += 1;
        s.cpus[cpu].current = next;
        s.cpus[cpu].counted_to = s.now;
        if next.is_none() && !was_idle {
            s.cpus[cpu].idle_since = s.now;
        }
    });
    // SAFETY: takes plain values.
    unsafe { ffi::model_set_idle(cpu as u32, next.is_none()) };
    let Some(task) = next else {
        return with(|s| s.tell(Entry::Idles(cpu)));
    };
    tell_run(cpu, task);
    with(|s| {
        s.cpus[cpu].local.retain(|&other| other != task);
        promises::runs(s, task);
        replay::runs(s, task);
        s.cpus[cpu].began = s.now;
        let t = &mut s.tasks[task];
        t.place = Place::Running;
        t.waits_since = None;
        task_work::runs(s, task);
    });
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_running(p) });
    with(|s| {
        let (turn, left) = (s.cpus[cpu].turn, s.tasks[task].left_ns);
        s.after(left, Event::Done(cpu, turn));
    });
}
