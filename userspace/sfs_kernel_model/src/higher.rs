//! Real-time and deadline tasks, which take a CPU away from sched_ext for a while.
//!
//! They follow the order of calls in kernel/sched/core.c and kernel/sched/ext.c of Linux 6.18.
//! `__pick_next_task()` calls `balance_one()` before a higher class is asked, also on an idle CPU.
//! `put_prev_task_scx()` then queues the displaced task, and `switch_class()` reports the loss of
//! the CPU. A CPU that was idle, or had another real-time task, reports nothing.

use crate::ffi;
use crate::groups::ROOT;
use crate::program::in_program;
use crate::sched::{do_enqueue_task, schedule, slice, ENQ_HEAD, ENQ_REENQ, LOCAL};
use crate::state::{with, CpuId, Event, Place, State, TaskId, FIRST_PID};
use crate::tasks::{new_fields, push_task};
use crate::timeline::Entry;
use crate::workload::{between, exponential, Behaviour};
use sfs_kernel_draws::real_time::RealTime;

/// What a CPU knows of higher classes.
#[derive(Debug, Default)]
pub struct Higher {
    /// The task of a higher class that runs here.
    pub runs: Option<TaskId>,
    /// One that is runnable here, and for how many ns it will run.
    pub waits: Option<(TaskId, u64)>,
    /// The one that runs goes to sleep.
    leaves: bool,
    /// Counts tasks of higher classes, so that late events are recognised.
    turn: u64,
    /// `rq->scx.cpu_released`: the kernel half knows that the CPU is away.
    released: bool,
    /// Tasks in the local queue when the CPU was taken without a report.
    stuck: Vec<TaskId>,
    /// The task of a higher class that is bound to this CPU.
    pub own: Option<TaskId>,
}

/// Adds a task of a higher class for each CPU. It is initialized like all tasks, but not enabled.
pub fn add(kind: RealTime) {
    for cpu in 0..kind.cpus as usize {
        let prio = with(|s| between(&mut s.outside_random, 0, 99)) as i32 - 1;
        add_on(cpu, prio);
    }
    with(|s| plan(s, kind));
}

/// Adds a task of a higher class that runs on `cpu`, with the kernel's number of its priority.
pub fn add_on(cpu: CpuId, prio: i32) {
    let pointer = with(|s| {
        let fields = new_fields(FIRST_PID + s.tasks.len() as i32, s.monotonic());
        s.groups.birthplace = Some(ROOT);
        let task = push_task(s, fields, Behaviour::Hog, cpu, None);
        s.live.remove(&task);
        s.cpus[cpu].higher.own = Some(task);
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_set_prio(fields.task, prio) };
        fields.task
    });
    // SAFETY: the same.
    unsafe { ffi::model_init_task(pointer, false) };
}

/// The task of a higher class on `cpu` is runnable for `ns` from now on: it wakes up, or goes on.
pub fn run_for(s: &mut State, cpu: CpuId, ns: u64) {
    let higher = &mut s.cpus[cpu].higher;
    if higher.runs.is_some() {
        higher.turn += 1;
        let turn = higher.turn;
        return s.after(ns, Event::RealTimeSleeps(cpu, turn));
    }
    higher.waits = higher.own.map(|task| (task, ns));
    crate::sched::resched(s, cpu);
}

/// Sends the next real-time task.
fn plan(s: &mut State, kind: RealTime) {
    let delay = exponential(&mut s.outside_random, kind.gap_ns / kind.cpus);
    s.after(delay, Event::RealTime);
}

/// A real-time task wakes up on some CPU: an interrupt, then resched_curr().
pub fn wakes(kind: RealTime) {
    with(|s| {
        plan(s, kind);
        let cpu = between(&mut s.outside_random, 0, kind.cpus - 1) as usize;
        let ns = exponential(&mut s.outside_random, kind.runs_ns);
        let higher = &mut s.cpus[cpu].higher;
        if let Some(task) = higher.own.filter(|_| higher.runs.is_none()) {
            higher.waits = Some((task, ns));
            crate::sched::resched(s, cpu);
        }
    });
}

/// The real-time task in this turn of the CPU goes to sleep.
pub fn sleeps(cpu: CpuId, turn: u64) {
    let is_last = with(|s| {
        let higher = &mut s.cpus[cpu].higher;
        higher.leaves = higher.runs.is_some() && higher.turn == turn;
        higher.leaves
    });
    if is_last {
        schedule(cpu);
    }
}

/// Returns true if `__schedule()` has nothing to do: the higher class goes on.
pub fn keeps(s: &State, cpu: CpuId) -> bool {
    let higher = &s.cpus[cpu].higher;
    higher.runs.is_some() && !higher.leaves
}

/// Returns true if a higher class has the CPU, as `rq->curr` shows it.
pub fn has(s: &State, cpu: CpuId) -> bool {
    s.cpus[cpu].higher.runs.is_some()
}

/// Returns true if a task is stuck in the local queue of a CPU that was taken without a report:
/// no scheduler can help it.
pub fn is_stuck(s: &State, task: TaskId) -> bool {
    let t = &s.tasks[task];
    t.place == Place::Local && s.cpus[t.cpu].higher.stuck.contains(&task)
}

/// balance_one() begins: the CPU is back.
pub fn acquire(cpu: CpuId) {
    if with(|s| std::mem::take(&mut s.cpus[cpu].higher.released)) {
        in_program(cpu, || {
            // SAFETY: the kernel half does not read the arguments, which the kernel gives as null.
            unsafe { ffi::model_cpu_acquire(cpu as i32) }
        });
    }
}

/// pick_next_task(): a higher class comes first. `previous` is the task of ours that had the CPU,
/// `stays` the same if it is still runnable. Returns false if no higher class wants the CPU.
pub fn pick(cpu: CpuId, previous: Option<TaskId>, stays: Option<TaskId>) -> bool {
    let Some((task, ns)) = with(|s| next(s, cpu)) else {
        with(|s| leave(s, cpu));
        return false;
    };
    if let Some(task) = stays {
        put_prev(cpu, task);
    }
    match previous {
        Some(_) => switch_class(cpu),
        None => with(|s| s.cpus[cpu].higher.stuck = s.cpus[cpu].local.iter().copied().collect()),
    }
    // SAFETY: takes plain values. put_prev_task_idle() clears the bit of an idle CPU.
    unsafe { ffi::model_set_idle(cpu as u32, false) };
    with(|s| {
        let turn = {
            let c = &mut s.cpus[cpu];
            c.turn += 1;
            c.current = None;
            c.higher.runs = Some(task);
            c.higher.turn += 1;
            c.higher.turn
        };
        s.tasks[task].place = Place::Running;
        s.tell(Entry::Taken(cpu));
        s.after(ns, Event::RealTimeSleeps(cpu, turn));
    });
    true
}

/// The task of a higher class that waits. If one leaves, another one may come while balance_one()
/// has unlocked the run queue: then the kernel does not report that the CPU is taken again.
fn next(s: &mut State, cpu: CpuId) -> Option<(TaskId, u64)> {
    let may_return = s.replay.is_none();
    if s.cpus[cpu].higher.leaves && may_return && between(&mut s.outside_random, 0, 15) == 0 {
        let ns = exponential(&mut s.outside_random, 200_000);
        return std::mem::take(&mut s.cpus[cpu].higher.leaves)
            .then_some((s.cpus[cpu].higher.own?, ns));
    }
    s.cpus[cpu].higher.waits.take()
}

fn leave(s: &mut State, cpu: CpuId) {
    let now = s.now;
    let c = &mut s.cpus[cpu];
    if std::mem::take(&mut c.higher.leaves) {
        c.idle_since = now;
        c.higher.stuck.clear();
        let task = c.higher.runs.take();
        s.tasks[task.expect("one leaves")].place = Place::Asleep;
    }
}

/// put_prev_task_scx() with a next task of a higher class. The task with a rest of its slice goes
/// to the head of the local queue.
fn put_prev(cpu: CpuId, task: TaskId) {
    // SAFETY: the task is one of the machine's.
    crate::sched::call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, true) });
    let has_slice = with(|s| {
        s.tasks[task].place = Place::Moving;
        s.tasks[task].waits_since = Some(s.now);
        slice(s, task) > 0 && !s.cpus[cpu].is_bypassed
    });
    if has_slice {
        with(|s| crate::sched::dispatch_enqueue(s, task, LOCAL, ENQ_HEAD));
    } else {
        do_enqueue_task(cpu, task, 0);
    }
}

/// switch_class(): reports once that the CPU is away.
fn switch_class(cpu: CpuId) {
    let is_lost = with(|s| s.faults.lost_releases);
    if is_lost || with(|s| std::mem::replace(&mut s.cpus[cpu].higher.released, true)) {
        return;
    }
    in_program(cpu, || {
        // SAFETY: the kernel half does not read the arguments.
        unsafe { ffi::model_cpu_release(cpu as i32) }
    });
    with(|s| check_release(s, cpu));
}

/// Behind cpu_release() no task waits in the local queue that may run elsewhere.
fn check_release(s: &mut State, cpu: CpuId) {
    let elsewhere = |task: TaskId| (0..s.cpus.len()).any(|c| c != cpu && s.may_run(task, c));
    let left: Vec<TaskId> = s.cpus[cpu].local.iter().copied().collect();
    let left: Vec<TaskId> = left.into_iter().filter(|&task| elsewhere(task)).collect();
    if !left.is_empty() {
        s.finding(format!(
            "cpu_release() leaves tasks {left:?} to CPU {cpu}, which a real-time task has"
        ));
    }
}

/// scx_bpf_reenqueue_local(): the tasks of the local queue are queued again, those that come back
/// only once.
pub fn reenqueue_local() -> u32 {
    let (cpu, tasks) = with(|s| {
        let cpu = s.here;
        let tasks: Vec<TaskId> = s.cpus[cpu].local.drain(..).collect();
        for &task in &tasks {
            s.tasks[task].place = Place::Moving;
        }
        (cpu, tasks)
    });
    for &task in &tasks {
        do_enqueue_task(cpu, task, ENQ_REENQ);
    }
    tasks.len() as u32
}
