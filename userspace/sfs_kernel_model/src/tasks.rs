//! New tasks.

use crate::ffi::{self, Fields, TaskStruct};
use crate::groups;
use crate::life::{self, Life};
use crate::promises::Promise;
use crate::race;
use crate::reader;
use crate::replay;
use crate::state::{with, Event, Place, State, Task, TaskId};
use crate::timeline::Entry;
use crate::workload::Behaviour;
use rand_chacha::ChaCha8Rng;
use std::mem::MaybeUninit;

/// PF_KTHREAD.
pub const KERNEL_THREAD: u32 = 0x0020_0000;
/// TASK_DEAD.
pub const DEAD: u32 = 0x80;
const ENOMEM: i32 = -12;

/// The memory of a new task.
pub fn new_fields(pid: i32, now: u64) -> Fields {
    let mut fields = MaybeUninit::uninit();
    // SAFETY: `fields` has room for what is written; it is written unless null comes back.
    unsafe {
        let task: *mut TaskStruct = ffi::model_new_task(pid, now, fields.as_mut_ptr());
        assert!(!task.is_null(), "no memory for a task");
        fields.assume_init()
    }
}

/// A new task, which has not run yet, on `cpu`; with random numbers of its own, or without.
pub fn push_task(
    s: &mut State,
    fields: Fields,
    behaviour: Behaviour,
    cpu: usize,
    random: Option<ChaCha8Rng>,
) -> TaskId {
    let id = s.tasks.len();
    s.tasks.push(Task {
        fields,
        place: Place::Asleep,
        cpu,
        queued_as: 0,
        key: (0, 0),
        left_ns: 0,
        stops: false,
        waits_since: None,
        allowed_since: s.now,
        direct: None,
        holding: None,
        behaviour,
        promise: Promise::default(),
        life: Life::default(),
        random: random.map(Box::new),
        context: None,
    });
    s.live.insert(id);
    // SAFETY: the task's memory lives as long as the machine.
    let is_kernel_thread = unsafe { *fields.flags } & KERNEL_THREAD != 0;
    groups::enter(s, id, is_kernel_thread);
    id
}

/// scx_init_task() and scx_enable_task(). Returns false if the fork fails, because there is no
/// memory for a task under a quota.
pub fn init_task(task: TaskId, fork: bool) -> bool {
    if !fork {
        groups::post_fork(task);
    }
    let pointer = with(|s| s.tasks[task].fields.task);
    // SAFETY: the task is one of the machine's.
    let err = unsafe { ffi::model_init_task(pointer, fork) };
    if err != 0 {
        if !(fork && err == ENOMEM && with(|s| s.odd.of.no_memory_of > 0)) {
            with(|s| s.finding(format!("init_task refuses task {task}: {err}")));
        }
        return false;
    }
    // SAFETY: the same.
    unsafe { ffi::sfs_enable(pointer) };
    if fork {
        groups::post_fork(task);
    }
    true
}

/// The idle task: init_idle().
pub fn swapper(now: u64) -> *mut TaskStruct {
    let fields = new_fields(0, now);
    // SAFETY: the task is new.
    unsafe { *fields.flags |= KERNEL_THREAD };
    fields.task
}

/// ttwu_state_match(): a task that sleeps can be woken up, one that is about to end cannot.
pub fn sleeps(s: &State, task: TaskId) -> bool {
    s.tasks[task].place == Place::Asleep && !is_dead(s, task)
}

/// TASK_DEAD.
fn is_dead(s: &State, task: TaskId) -> bool {
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.state == DEAD }
}

/// finish_task_switch(): the task that has left sleeps, or is no more.
pub fn finish(task: TaskId) {
    with(|s| {
        s.tasks[task].stops = false;
        let ends = is_dead(s, task);
        s.tell(if ends {
            Entry::Ends(task)
        } else {
            Entry::Sleeps(task)
        });
    });
    if with(|s| reader::fell_asleep(s, task)) {
        return;
    }
    let sleep = with(|s| {
        if let Some(ns) = replay::sleep(s, task) {
            return Some(ns);
        }
        let t = &mut s.tasks[task];
        let random = t.random.as_deref_mut().unwrap_or(&mut s.random);
        t.behaviour.sleep(random)
    });
    match sleep {
        // A signal has come in the middle of the switch.
        None if !with(|s| is_dead(s, task)) => with(|s| s.after(1_000, Event::Wake(task))),
        // So has a message.
        Some(_) if with(|s| life::takes_mail(s, task)) => with(|s| s.after(0, Event::Wake(task))),
        Some(_) if with(|s| life::awaits_mail(s.tasks[task].behaviour)) => {}
        Some(ns) => with(|s| s.after(ns, Event::Wake(task))),
        None => {
            // sched_ext_dead() and scx_disable_and_exit_task().
            let _locks = race::task_rq(task);
            let pointer = with(|s| s.tasks[task].fields.task);
            // SAFETY: the task is one of the machine's.
            unsafe { ffi::model_exit_task(pointer) };
            with(|s| s.forget(task));
        }
    }
}
