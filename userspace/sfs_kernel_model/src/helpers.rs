//! The helpers and kfuncs that the kernel half calls, except those in `c/model.c` and those for
//! maps.
//!
//! The kernel half passes pointers that it got from the model, or that point to its own memory,
//! as the verifier has it; the functions here rely on that.

use crate::ffi::{self, TaskStruct};
use crate::lines;
use crate::program::current;
use crate::race;
use crate::sched::{dispatch_enqueue, flush_dispatch_buf, ENQ_PRIQ, LOCAL};
use crate::state::{with, CpuId, Event, Place, State, TaskId, Timer, Walk, FIRST_PID};
use rand_core::Rng;
use std::ffi::c_void;
use std::ptr;

const ENOENT: i64 = -2;
const EEXIST: i32 = -17;
/// SCX_DSQ_ITER_REV.
const REVERSE: u64 = 1 << 16;
/// A kick reaches another CPU after this many ns at most.
const KICK_NS: u32 = 20_000;
/// A late timer is so late, ns.
const LATE_NS: u64 = 20_000_000;

/// The task behind a pointer; `None` for the idle task.
pub(crate) fn task_of(task: *const TaskStruct) -> Option<TaskId> {
    if task.is_null() {
        return None;
    }
    // SAFETY: the kernel half has this pointer from the model.
    let pid = unsafe { ffi::model_pid(task) };
    usize::try_from(pid - FIRST_PID).ok()
}

/// The task behind a pointer, which is not that of the idle task.
pub fn id(task: *const TaskStruct) -> TaskId {
    task_of(task).expect("not the idle task")
}

// ---------------------------------------------------------------- time and place

#[no_mangle]
extern "C" fn bpf_ktime_get_ns() -> u64 {
    with(|s| s.monotonic())
}

/// The clock of CPU time, from which NTP makes bpf_ktime_get_ns() differ.
#[no_mangle]
extern "C" fn scx_bpf_now() -> u64 {
    with(|s| s.now)
}

#[no_mangle]
extern "C" fn bpf_get_prandom_u32() -> u32 {
    with(|s| s.random.next_u32())
}

#[no_mangle]
extern "C" fn bpf_get_smp_processor_id() -> u32 {
    with(|s| s.here as u32)
}

#[no_mangle]
extern "C" fn bpf_get_current_task_btf() -> *mut TaskStruct {
    with(|s| current(s, s.here))
}

#[no_mangle]
extern "C" fn scx_bpf_cpu_curr(cpu: i32) -> *mut TaskStruct {
    race::point();
    with(|s| current(s, cpu as usize))
}

#[no_mangle]
extern "C" fn scx_bpf_task_cpu(task: *const TaskStruct) -> i32 {
    race::point();
    task_of(task).map_or(0, |task| with(|s| s.tasks[task].cpu as i32))
}

#[no_mangle]
extern "C" fn bpf_task_from_pid(pid: i32) -> *mut TaskStruct {
    race::point();
    let task = usize::try_from(pid - FIRST_PID).unwrap_or(usize::MAX);
    with(|s| match s.tasks.get(task) {
        Some(found) if found.place != Place::Dead => found.fields.task,
        _ => ptr::null_mut(),
    })
}

#[no_mangle]
extern "C" fn bpf_task_release(_task: *mut TaskStruct) {}

#[no_mangle]
extern "C" fn bpf_timer_init(timer: *const c_void, map: *mut c_void, _flags: u64) -> i64 {
    race::point();
    let new = Timer {
        map,
        callback: ptr::null_mut(),
        start: 0,
        fired: (0, 0),
    };
    with(|s| s.timers.insert(timer as usize, new));
    0
}

#[no_mangle]
extern "C" fn bpf_timer_set_callback(timer: *const c_void, callback: *mut c_void) -> i64 {
    race::point();
    with(|s| {
        let found = s.timers.get_mut(&(timer as usize));
        found.map_or(ENOENT, |timer| {
            timer.callback = callback;
            0
        })
    })
}

#[no_mangle]
extern "C" fn bpf_timer_start(timer: *const c_void, ns: u64, flags: u64) -> i64 {
    race::point();
    with(|s| {
        let start = s.number();
        let Some(found) = s.timers.get_mut(&(timer as usize)) else {
            return ENOENT;
        };
        found.start = start;
        let late = if s.faults.late_timers { LATE_NS } else { 0 };
        let ns = ns.saturating_sub((flags & 1) * s.monotonic()); // BPF_F_TIMER_ABS
        s.after(s.until(ns) + late, Event::Timer(timer as usize, start));
        0
    })
}

// ---------------------------------------------------------------------- queues

#[no_mangle]
extern "C" fn scx_bpf_create_dsq(queue: u64, _node: i32) -> i32 {
    race::point();
    with(|s| match s.queues.insert(queue, Default::default()) {
        None => 0,
        Some(_) => EEXIST,
    })
}

#[no_mangle]
extern "C" fn scx_bpf_destroy_dsq(queue: u64) {
    race::point();
    with(|s| match s.queues.remove(&queue) {
        Some(dsq) if !dsq.is_empty() => {
            s.finding(format!("queue {queue:#x} was removed with tasks"))
        }
        _ => {}
    });
}

#[no_mangle]
extern "C" fn scx_bpf_dsq_nr_queued(queue: u64) -> i32 {
    race::point();
    with(|s| {
        if queue == LOCAL {
            return s.cpus[s.here].local.len() as i32;
        }
        if queue & crate::sched::LOCAL_ON == crate::sched::LOCAL_ON {
            return s.cpus[(queue & 0xffff_ffff) as usize].local.len() as i32;
        }
        lines::queue(s, queue, false);
        s.queues
            .get(&queue)
            .map_or(ENOENT as i32, |dsq| dsq.len() as i32)
    })
}

#[no_mangle]
extern "C" fn scx_bpf_dsq_peek(queue: u64) -> *mut TaskStruct {
    race::point();
    with(|s| {
        lines::queue(s, queue, false);
        let first = s.queues.get(&queue).and_then(|dsq| dsq.iter().next());
        first.map_or(ptr::null_mut(), |task| s.tasks[task].fields.task)
    })
}

/// scx_dsq_insert_commit().
fn insert(task: *mut TaskStruct, queue: u64, flags: u64) -> bool {
    let task = id(task);
    with(|s| {
        if s.directs == Some(task) {
            if s.tasks[task].direct.is_some() {
                s.finding(format!("task {task} is inserted into two queues"));
            }
            s.tasks[task].direct = Some((queue, flags));
        } else if s.in_dispatch {
            let here = s.here;
            s.cpus[here].dispatched.push((task, queue, flags));
        } else {
            s.finding(format!("task {task} is inserted outside of its enqueue()"));
        }
    });
    true
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_dsq_insert___v1(
    task: *mut TaskStruct,
    queue: u64,
    slice: u64,
    flags: u64,
) {
    race::point();
    // SAFETY: the task's memory lives as long as the machine.
    with(|s| unsafe {
        let place = s.tasks[id(task)].fields.slice;
        *place = if slice > 0 { slice } else { (*place).max(1) };
    });
    insert(task, queue, flags);
}

/// `struct scx_bpf_dsq_insert_vtime_args`.
#[repr(C)]
struct VtimeArgs {
    queue: u64,
    slice: u64,
    vtime: u64,
    flags: u64,
}

#[no_mangle]
unsafe extern "C" fn __scx_bpf_dsq_insert_vtime(
    task: *mut TaskStruct,
    args: *const VtimeArgs,
) -> bool {
    race::point();
    // SAFETY: the kernel half passes its own structure; the task's memory lives as long as the
    // machine.
    let args = unsafe { &*args };
    // SAFETY: the same.
    with(|s| unsafe {
        let fields = s.tasks[id(task)].fields;
        *fields.slice = if args.slice > 0 {
            args.slice
        } else {
            (*fields.slice).max(1)
        };
        *fields.vtime = args.vtime;
    });
    insert(task, args.queue, args.flags | ENQ_PRIQ)
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_task_set_slice___new(task: *mut TaskStruct, slice: u64) -> bool {
    race::point();
    // SAFETY: the task's memory lives as long as the machine.
    with(|s| unsafe { *s.tasks[id(task)].fields.slice = slice });
    true
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_task_set_dsq_vtime___new(task: *mut TaskStruct, vtime: u64) -> bool {
    race::point();
    // SAFETY: the task's memory lives as long as the machine.
    with(|s| unsafe { *s.tasks[id(task)].fields.vtime = vtime });
    true
}

/// consume_dispatch_q(): the first task that may run here goes to the local queue.
#[no_mangle]
extern "C" fn scx_bpf_dsq_move_to_local___v1(queue: u64) -> bool {
    race::point();
    let here = with(|s| {
        flush_dispatch_buf(s, s.here);
        s.here
    });
    consume(here, queue)
}

/// consume_dispatch_q(): gives a CPU the first task of a queue that it may run. Returns whether there
/// is one.
pub fn consume(cpu: CpuId, queue: u64) -> bool {
    while let Some(task) = with(|s| first_for(s, cpu, queue)) {
        // consume_remote_task() starts again if the task has gone elsewhere.
        if let Some(_migrating) = race::migrate(cpu, task) {
            with(|s| dispatch_enqueue(s, task, LOCAL, 0));
            return true;
        }
    }
    false
}

/// Takes the first task that may run on a CPU out of a queue.
fn first_for(s: &mut State, cpu: CpuId, queue: u64) -> Option<TaskId> {
    let Some(dsq) = s.queues.get(&queue) else {
        s.finding(format!("there is no queue {queue:#x} to take from"));
        return None;
    };
    let task = dsq.iter().find(|&task| s.may_run(task, cpu));
    // An empty queue is seen without its lock.
    lines::queue(s, queue, task.is_some());
    let task = task?;
    take_out(s, task, queue);
    Some(task)
}

fn take_out(s: &mut State, task: TaskId, queue: u64) {
    lines::queue(s, queue, true);
    let key = s.tasks[task].key;
    let there = s.queues.get_mut(&queue).is_some_and(|dsq| dsq.remove(key));
    if !there {
        s.finding(format!("task {task} is not in queue {queue:#x}"));
    }
    s.tasks[task].place = Place::Moving;
}

// ----------------------------------------------------------- walks through queues

#[no_mangle]
unsafe extern "C" fn bpf_iter_scx_dsq_new(walk: *mut u64, queue: u64, flags: u64) -> i32 {
    race::point();
    let number = with(|s| {
        let number = s.number();
        if s.queues.contains_key(&queue) {
            let walk = Walk {
                queue,
                began: number,
                reverse: flags & REVERSE != 0,
                at: None,
                next_slice: None,
                next_vtime: None,
            };
            s.walks.insert(number, walk);
        }
        number
    });
    // SAFETY: the iterator is memory of the kernel half.
    unsafe { *walk = number };
    if with(|s| s.walks.contains_key(&number)) {
        0
    } else {
        ENOENT as i32
    }
}

#[no_mangle]
unsafe extern "C" fn bpf_iter_scx_dsq_next(walk: *mut u64) -> *mut TaskStruct {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    let number = unsafe { *walk };
    with(|s| {
        let Some(walk) = s.walks.get_mut(&number) else {
            return ptr::null_mut();
        };
        let Some(dsq) = s.queues.get(&walk.queue) else {
            return ptr::null_mut();
        };
        while let Some((key, task)) = dsq.beside(walk.at, walk.reverse) {
            walk.at = Some(key);
            if s.tasks[task].queued_as <= walk.began {
                return s.tasks[task].fields.task;
            }
        }
        ptr::null_mut()
    })
}

#[no_mangle]
unsafe extern "C" fn bpf_iter_scx_dsq_destroy(walk: *mut u64) {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    let number = unsafe { *walk };
    with(|s| s.walks.remove(&number));
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_dsq_move_set_slice___new(walk: *mut u64, slice: u64) {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    let number = unsafe { *walk };
    with(|s| s.walks.get_mut(&number).expect("a walk").next_slice = Some(slice));
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_dsq_move_set_vtime___new(walk: *mut u64, vtime: u64) {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    let number = unsafe { *walk };
    with(|s| s.walks.get_mut(&number).expect("a walk").next_vtime = Some(vtime));
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_dsq_move___new(
    walk: *mut u64,
    task: *mut TaskStruct,
    queue: u64,
    flags: u64,
) -> bool {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    move_task(unsafe { *walk }, id(task), queue, flags)
}

#[no_mangle]
unsafe extern "C" fn scx_bpf_dsq_move_vtime___new(
    walk: *mut u64,
    task: *mut TaskStruct,
    queue: u64,
    flags: u64,
) -> bool {
    race::point();
    // SAFETY: the iterator is memory of the kernel half.
    move_task(unsafe { *walk }, id(task), queue, flags | ENQ_PRIQ)
}

/// scx_dsq_move().
fn move_task(walk: u64, task: TaskId, queue: u64, flags: u64) -> bool {
    let here = with(|s| s.here);
    race::at_source(here, task, || {
        with(|s| move_locked(s, walk, task, (queue, flags)))
    })
}

/// The same with the task's run queue locked: it must not have left its queue, even if it has come
/// back since the walk began.
fn move_locked(s: &mut State, walk: u64, task: TaskId, (queue, flags): (u64, u64)) -> bool {
    let walk = s.walks.get_mut(&walk).expect("a walk");
    let began = walk.began;
    let (from, slice, vtime) = (walk.queue, walk.next_slice.take(), walk.next_vtime.take());
    let t = &s.tasks[task];
    if t.place != Place::Queue(from) || t.queued_as > began || s.faults.stuck_queues {
        return false;
    }
    take_out(s, task, from);
    crate::groups::leaves_park(s, task, from, queue);
    let fields = s.tasks[task].fields;
    // SAFETY: the task's memory lives as long as the machine.
    unsafe {
        *fields.slice = slice.unwrap_or(*fields.slice);
        *fields.vtime = vtime.unwrap_or(*fields.vtime);
    }
    dispatch_enqueue(s, task, queue, flags);
    true
}

// ----------------------------------------------------------------------- kicks

#[no_mangle]
extern "C" fn scx_bpf_kick_cpu(cpu: i32, flags: u64) {
    race::point();
    let cpu = cpu as usize;
    with(|s| {
        if cpu >= s.cpus.len() {
            return s.finding(format!("CPU {cpu} is kicked, which does not exist"));
        }
        if s.faults.lost_kicks {
            return;
        }
        let delay = u64::from(s.random.next_u32() % KICK_NS);
        // In a bypass switches would follow one another without end: they take no time here.
        let is_here = cpu == s.here && !s.cpus[cpu].is_bypassed;
        s.after(if is_here { 0 } else { delay }, Event::Kick(cpu, flags));
    });
}

#[no_mangle]
extern "C" fn scx_bpf_reenqueue_local___v1() -> u32 {
    race::point();
    crate::higher::reenqueue_local()
}
