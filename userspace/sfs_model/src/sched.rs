//! The core of sched_ext, after kernel/sched/ext.c of Linux 6.18: the names of functions are
//! those there. Callbacks run at once and take no time. No function here holds the state while
//! it calls the kernel half.

use crate::ffi;
use crate::ffi::TaskStruct;
use crate::groups;
use crate::state::{with, CpuId, Event, Place, State, TaskId};
use crate::task_work;
use std::ptr;

/// SCX_DSQ_LOCAL.
pub const LOCAL: u64 = 1 << 63 | 2;
/// SCX_DSQ_LOCAL_ON; the CPU is in the lower half.
pub const LOCAL_ON: u64 = 3 << 62;
/// SCX_ENQ_WAKEUP.
pub const ENQ_WAKEUP: u64 = 1;
/// SCX_ENQ_HEAD.
pub const ENQ_HEAD: u64 = 1 << 4;
/// SCX_ENQ_LAST.
const ENQ_LAST: u64 = 1 << 41;
/// SCX_ENQ_PREEMPT.
pub const ENQ_PREEMPT: u64 = 1 << 32;
/// SCX_ENQ_DSQ_PRIQ.
pub const ENQ_PRIQ: u64 = 1 << 57;
/// SCX_WAKE_TTWU.
pub const WAKE_TTWU: u64 = 8;
/// SCX_WAKE_FORK.
pub const WAKE_FORK: u64 = 4;
/// SCX_KICK_IDLE.
pub const KICK_IDLE: u64 = 1;
/// SCX_KICK_PREEMPT.
pub const KICK_PREEMPT: u64 = 2;
/// SCX_SLICE_DFL.
const SLICE_DFL: u64 = 20_000_000;
/// SCX_SLICE_INF.
const SLICE_INF: u64 = u64::MAX;
/// SCX_TASK_QUEUED.
const QUEUED: u32 = 1;
/// SCX_DEQ_SLEEP.
const DEQ_SLEEP: u64 = 1;
/// DEQUEUE_SAVE.
const DEQ_SAVE: u64 = 2;
/// TASK_INTERRUPTIBLE and TASK_DEAD.
const SLEEPS: u32 = 1;
const DEAD: u32 = 0x80;
/// An interrupt reaches another CPU after at most so long.
pub const IPI_NS: u64 = 2_000;

/// Calls a callback of the kernel half for a task, on `cpu`.
fn call<T>(cpu: CpuId, task: TaskId, callback: impl FnOnce(*mut TaskStruct) -> T) -> T {
    let (pointer, before) = with(|s| {
        s.callbacks += 1;
        let before = std::mem::replace(&mut s.here, cpu);
        (s.tasks[task].fields.task, before)
    });
    let result = callback(pointer);
    groups::charged(task);
    with(|s| s.here = before);
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
    let (previous, is_pinned) = with(|s| {
        let t = &mut s.tasks[task];
        t.place = Place::Moving;
        t.direct = None;
        // SAFETY: the task's memory lives as long as the machine.
        let pinned = unsafe {
            *t.fields.state = 0;
            *t.fields.nr_cpus == 1
        };
        (t.cpu, pinned)
    });
    let flags = if is_new { WAKE_FORK } else { WAKE_TTWU };
    let chosen = if is_pinned {
        previous
    } else {
        // SAFETY: the task is one of the machine's.
        call_direct(cpu, task, |p| unsafe {
            ffi::sfs_select_cpu(p, previous as i32, flags)
        }) as usize
    };
    let chosen = with(|s| {
        let fits = chosen < s.cpus.len() && s.may_run(task, chosen);
        if !fits {
            s.finding(format!(
                "select_cpu chose CPU {chosen} for task {task}, which may not run there"
            ));
        }
        let chosen = if fits { chosen } else { previous };
        s.tasks[task].cpu = chosen;
        s.tasks[task].waits_since = Some(s.now);
        chosen
    });
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
fn do_enqueue_task(cpu: CpuId, task: TaskId, flags: u64) {
    if with(|s| s.tasks[task].direct.is_none()) {
        // SAFETY: the task is one of the machine's.
        call_direct(cpu, task, |p| unsafe { ffi::sfs_enqueue(p, flags) });
    }
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
    let key = if flags & ENQ_PRIQ != 0 {
        // SAFETY: the task's memory lives as long as the machine.
        dsq.push_by_vtime(task, unsafe { *fields.vtime })
    } else {
        dsq.push(task, flags & (ENQ_HEAD | ENQ_PREEMPT) != 0)
    };
    s.tasks[task].key = key;
    s.tasks[task].place = Place::Queue(queue);
}

/// Puts a task into a CPU's local queue, and makes the CPU look at it if it idles.
fn local_enqueue(s: &mut State, task: TaskId, cpu: CpuId, flags: u64) {
    s.tasks[task].cpu = cpu;
    s.tasks[task].place = Place::Local;
    if flags & (ENQ_HEAD | ENQ_PREEMPT) != 0 {
        s.cpus[cpu].local.push_front(task);
    } else {
        s.cpus[cpu].local.push_back(task);
    }
    if flags & ENQ_PREEMPT != 0 {
        if let Some(current) = s.cpus[cpu].current {
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
    with(|s| match s.cpus[cpu].current {
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
    // SAFETY: the task's memory lives as long as the machine.
    unsafe {
        *task.fields.cpu_time_ns += delta;
        if *task.fields.slice != SLICE_INF {
            *task.fields.slice = (*task.fields.slice).saturating_sub(delta);
        }
    }
}

/// scheduler_tick().
pub fn tick(cpu: CpuId) {
    let Some(current) = with(|s| {
        update_curr(s, cpu);
        s.cpus[cpu].current
    }) else {
        return;
    };
    // SAFETY: the task is one of the machine's.
    call(cpu, current, |p| unsafe { ffi::sfs_tick(p) });
    groups::ticked(current);
    with(|s| {
        if slice(s, current) == 0 {
            resched(s, cpu);
        }
    });
}

fn slice(s: &State, task: TaskId) -> u64 {
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.slice }
}

/// sched_change_begin() and sched_change_end(): an attribute of a task changes. Where it waits, it
/// leaves its queue and comes back; where it runs, it stops and goes on.
pub fn change(cpu: CpuId, task: TaskId, set: impl FnOnce(&mut State)) {
    let place = with(|s| s.tasks[task].place);
    if matches!(place, Place::Asleep | Place::Dead) {
        return with(set);
    }
    with(|s| leave_queue(s, task, place));
    if place == Place::Running {
        with(|s| update_curr(s, s.tasks[task].cpu));
        // SAFETY: the task is one of the machine's.
        call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, false) });
    }
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_quiescent(p, DEQ_SAVE) });
    with(set);
    // SAFETY: the same.
    call(cpu, task, |p| unsafe { ffi::sfs_runnable(p, 0) });
    if place == Place::Running {
        // SAFETY: the same.
        return call(cpu, task, |p| unsafe { ffi::sfs_running(p) });
    }
    do_enqueue_task(cpu, task, 0);
}

/// dispatch_dequeue(): a task that does not run leaves its queue.
fn leave_queue(s: &mut State, task: TaskId, place: Place) {
    let (cpu, key) = (s.tasks[task].cpu, s.tasks[task].key);
    let there = match place {
        Place::Running => return,
        Place::Local => {
            let before = s.cpus[cpu].local.len();
            s.cpus[cpu].local.retain(|&other| other != task);
            s.cpus[cpu].local.len() < before
        }
        Place::Queue(queue) => s.queues.get_mut(&queue).is_some_and(|dsq| dsq.remove(key)),
        Place::Moving | Place::Asleep | Place::Dead => false,
    };
    if !there {
        s.finding(format!("task {task} is not where it waits, {place:x?}"));
    }
    if groups::is_parked(place) {
        s.tasks[task].waits_since = Some(s.now); // until now it has waited for quota
    }
    s.tasks[task].place = Place::Moving;
}

/// sys_sched_yield(): yield_task_scx(), then schedule().
pub fn yield_now(cpu: CpuId, task: TaskId) {
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe {
        ffi::sfs_yield(p, ptr::null_mut());
    });
    schedule(cpu);
}

/// __schedule(): a CPU gets its next task.
pub fn schedule(cpu: CpuId) {
    let previous = with(|s| {
        s.cpus[cpu].resched = false;
        s.here = cpu;
        update_curr(s, cpu);
        s.cpus[cpu].current
    });
    let stays = previous.filter(|&task| !with(|s| s.tasks[task].stops));
    if let Some(task) = previous.filter(|_| stays.is_none()) {
        dequeue(cpu, task);
    }
    let keep = balance(cpu, stays);
    let next = match keep {
        true => stays,
        false => with(|s| s.cpus[cpu].local.front().copied()),
    };
    if let Some(task) = next.filter(|_| next == stays) {
        return with(|s| {
            if slice(s, task) == 0 {
                // SAFETY: the task's memory lives as long as the machine.
                unsafe { *s.tasks[task].fields.slice = SLICE_DFL };
            }
        });
    }
    if let Some(task) = stays {
        put_prev(cpu, task, next.is_none());
    }
    set_next(cpu, next, previous.is_none());
    if let Some(task) = previous.filter(|_| stays.is_none()) {
        finish(cpu, task);
    }
}

/// dequeue_task_scx(): the current task goes to sleep, or ends.
fn dequeue(cpu: CpuId, task: TaskId) {
    with(|s| {
        let state = if s.tasks[task].behaviour.ends() {
            DEAD
        } else {
            SLEEPS
        };
        // SAFETY: the task's memory lives as long as the machine.
        unsafe { *s.tasks[task].fields.state = state };
    });
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, false) });
    // SAFETY: the same.
    call(cpu, task, |p| unsafe { ffi::sfs_quiescent(p, DEQ_SLEEP) });
    set_queued(task, false);
    with(|s| s.tasks[task].place = Place::Asleep);
}

/// balance_one(): fills the local queue. Returns true if the previous task keeps the CPU.
fn balance(cpu: CpuId, stays: Option<TaskId>) -> bool {
    if stays.is_some_and(|task| with(|s| slice(s, task) > 0)) {
        return true;
    }
    if with(|s| !s.cpus[cpu].local.is_empty()) {
        return false;
    }
    loop {
        let pointer = with(|s| {
            s.callbacks += 1;
            s.here = cpu;
            s.in_dispatch = true;
            stays.map_or(ptr::null_mut(), |task| s.tasks[task].fields.task)
        });
        // SAFETY: the task is one of the machine's, or null as on an idle CPU.
        unsafe { ffi::sfs_dispatch(cpu as i32, pointer) };
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
        slice(s, task) > 0
    });
    if has_slice {
        with(|s| {
            let resched = s.cpus[cpu].resched;
            dispatch_enqueue(s, task, LOCAL, ENQ_HEAD);
            s.cpus[cpu].resched |= resched;
        });
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
    let Some(task) = next else { return };
    with(|s| {
        s.cpus[cpu].local.retain(|&other| other != task);
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

/// finish_task_switch(): the task that has left sleeps, or is no more.
fn finish(_cpu: CpuId, task: TaskId) {
    with(|s| s.tasks[task].stops = false);
    let sleep = with(|s| {
        let (behaviour, random) = (&mut s.tasks[task].behaviour, &mut s.random);
        behaviour.sleep(random)
    });
    match sleep {
        Some(ns) => with(|s| s.after(ns, Event::Wake(task))),
        None => {
            let pointer = with(|s| s.tasks[task].fields.task);
            // SAFETY: the task is one of the machine's.
            unsafe { ffi::model_exit_task(pointer) };
            with(|s| {
                s.tasks[task].place = Place::Dead;
                s.tasks[task].context = None;
                s.live.remove(&task);
            });
        }
    }
}
