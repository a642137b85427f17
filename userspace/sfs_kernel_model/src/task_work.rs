//! The return of a task to user mode, where the kernel half holds back a task whose group has no
//! quota (kernel/bpf/helpers.c, kernel/task_work.c of Linux 6.18), and the end of a task.

use crate::group_events::GroupEvent;
use crate::group_ffi::WorkCallback;
use crate::sched::update_curr;
use crate::state::{with, Event, Place, State, TaskId};
use crate::stay;
use crate::workload::{between, exponential};
use std::ffi::c_void;

/// PF_EXITING.
const PF_EXITING: u32 = 4;
/// The callback at the return to user mode takes a CPU away by a kick, which takes so long, ns.
pub const KICK_NS: u64 = 25_000;

/// `struct bpf_task_work` on its way.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    map: *mut c_void,
    work: *mut c_void,
    callback: WorkCallback,
    /// The task's CPU time from which on the wait for the return is known to the account.
    pub from_ns: u64,
}

/// bpf_task_work_schedule_resume(), as Linux 6.18 calls it: `task` calls `callback` on its return
/// to user mode.
#[no_mangle]
unsafe extern "C" fn bpf_task_work_schedule_resume_impl(
    task: *mut crate::ffi::TaskStruct,
    work: *mut c_void,
    map: *mut c_void,
    callback: WorkCallback,
    _aux: *mut c_void,
) -> i32 {
    const EBUSY: i32 = -16;
    let task = crate::helpers::id(task);
    with(|s| {
        // SAFETY: the task's memory lives as long as the machine.
        let from_ns = unsafe { *s.tasks[task].fields.cpu_time_ns };
        let is_leaving = stay::is_leaving(s, task);
        let member = &mut s.groups.members[task];
        if member.work.is_some() || is_leaving {
            return EBUSY;
        }
        if member.exits {
            return 0; // task_work_add() fails later, in an interrupt
        }
        member.work = Some(Work {
            map,
            work,
            callback,
            from_ns,
        });
        if s.tasks[task].place == Place::Running {
            plan_return(s, task);
        }
        0
    })
}

/// The task, which runs, is in user mode or in a system call: so it returns soon, or later.
fn plan_return(s: &mut State, task: TaskId) {
    let delay = match between(&mut s.random, 0, 19) {
        0..=13 => between(&mut s.random, 100, 3_000),
        14..=18 => exponential(&mut s.random, 100_000),
        _ => exponential(&mut s.random, 3_000_000),
    };
    let turn = s.cpus[s.tasks[task].cpu].turn;
    s.after(delay, Event::Group(GroupEvent::Return(task, turn)));
}

/// A task begins to run.
pub fn runs(s: &mut State, task: TaskId) {
    if let Some(member) = s.groups.members.get_mut(task) {
        member.excused_ns = 0;
        if member.work.is_some() {
            plan_return(s, task);
        }
    }
}

/// A task returns to user mode, if it still has its CPU in the same turn; not before a section
/// without migration ends, which is one inside the kernel.
pub fn returns(task: TaskId, turn: u64) {
    let is_there = with(|s| {
        let cpu = s.tasks[task].cpu;
        let is_there = s.cpus[cpu].current == Some(task) && s.cpus[cpu].turn == turn;
        if is_there && s.tasks[task].life.stays {
            plan_return(s, task);
            return false;
        }
        is_there
    });
    if is_there {
        task_work_run(task);
    }
}

/// task_work_run().
pub fn task_work_run(task: TaskId) {
    let found = with(|s| {
        let cpu = s.tasks[task].cpu;
        s.groups.members[task].work?;
        update_curr(s, cpu);
        let fields = s.tasks[task].fields;
        // SAFETY: the task's memory lives as long as the machine.
        let total = unsafe { *fields.cpu_time_ns };
        let member = &mut s.groups.members[task];
        let work = member.work.take()?;
        member.excused_ns += total - work.from_ns + KICK_NS;
        s.here = cpu;
        s.callbacks += 1;
        Some((work, fields.task))
    });
    let Some((work, pointer)) = found else { return };
    let mut key = pointer as u64;
    // SAFETY: the kernel half gave this function; the map's entry stays until the task is gone.
    unsafe { (work.callback)(work.map, &mut key, work.work) };
    with(|s| {
        s.tasks[task].life.returned_at = s.now;
        s.tasks[task].life.may_be_confined = true;
    });
}

/// do_exit(): a task that wants to end has some CPU time more to use, with PF_EXITING. Returns
/// true if it begins to.
pub fn begins_exit(task: TaskId) -> bool {
    let begins = with(|s| {
        let ends = s.groups.are_there() && s.tasks[task].behaviour.ends();
        if !ends || std::mem::replace(&mut s.groups.members[task].exits, true) {
            return false;
        }
        let left = match between(&mut s.random, 0, 7) {
            0 => exponential(&mut s.random, 3_000_000),
            _ => exponential(&mut s.random, 50_000),
        };
        // SAFETY: the task's memory lives as long as the machine.
        unsafe { *s.tasks[task].fields.flags |= PF_EXITING };
        s.tasks[task].left_ns = left;
        true
    });
    if begins {
        task_work_run(task);
    }
    begins
}
