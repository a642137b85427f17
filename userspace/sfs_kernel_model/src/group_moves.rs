//! Tasks move between control groups: cgroup_attach_task() of kernel/cgroup/cgroup.c, with what
//! kernel/sched/core.c and kernel/sched/ext.c of Linux 6.18 do in it.

use crate::change::change;
use crate::group_events::{any_open, chance, GroupEvent};
use crate::group_ffi as ffi;
use crate::groups::{GroupId, Stage, ROOT};
use crate::race;
use crate::sched::resched;
use crate::state::{with, Event, Place, State, TaskId};
use crate::workload::{between, Behaviour};
use sfs_kernel_draws::numbers::US;

const ENOMEM: i32 = -12;

/// Any task goes to the root or to any group.
pub fn move_some(s: &mut State) {
    let Some(last) = (s.live.len() as u64).checked_sub(1) else {
        return;
    };
    let task = between(&mut s.random, 0, last) as usize;
    let task = *s.live.iter().nth(task).expect("it lives");
    if s.tasks[task].behaviour == Behaviour::Loader {
        return; // it stays where systemd has put it
    }
    let to = if chance(s, 4) {
        ROOT
    } else {
        any_open(s).unwrap_or(ROOT)
    };
    let delay = between(&mut s.random, 0, 20 * US);
    s.after(delay, Event::Group(GroupEvent::Move(task, to)));
}

/// cgroup_migrate(): scx_cgroup_can_attach() asks the kernel half if the task's group of the CPU
/// controller changes; then p->cgroups changes. Exiting tasks do not move.
pub fn begin_move(task: TaskId, to: GroupId) {
    let _wakeup = race::pi_lock(task); // cgroup_threadgroup_rwsem: it does not fork or exit now
    let found = with(|s| {
        let member = s.groups.members[task];
        let may = matches!(s.groups.all[to].stage, Stage::Online);
        if s.groups.moving.is_some() {
            s.groups.moves.push_back((task, to));
            return None;
        }
        if !may || !s.live.contains(&task) || member.exits || member.is_kernel_thread {
            unlock(s);
            return None;
        }
        let group = |at: GroupId| s.groups.upwards(at).find(|&at| s.groups.all[at].has_cpu);
        let changes = group(member.css) != group(to);
        let memory = |at: GroupId| s.groups.all[at].memory;
        Some((
            s.tasks[task].fields.task,
            memory(member.css),
            memory(to),
            changes,
        ))
    });
    let Some((pointer, from, memory, changes)) = found else {
        return;
    };
    if changes {
        // SAFETY: all are the machine's.
        let err = unsafe { ffi::model_prep_move(pointer, from, memory) };
        if err != 0 {
            return with(|s| {
                // A task without a context cannot be throttled, so no quota takes it.
                let lacks_context = s.tasks[task].context.is_none() && err == ENOMEM;
                if s.odd.of.no_memory_of == 0 || !lacks_context {
                    s.finding(format!("task {task} may not move: {err}"));
                }
                unlock(s);
            });
        }
    }
    // SAFETY: both are the machine's.
    unsafe { ffi::model_set_css(pointer, memory) };
    with(|s| {
        s.groups.members[task].css = to;
        if changes {
            s.groups.moving = Some(task);
            let delay = between(&mut s.random, 0, 10 * US);
            s.after(delay, Event::Group(GroupEvent::Attach(task, to)));
        } else {
            s.groups.members[task].tg = to;
            unlock(s);
        }
    });
}

/// cgroup_unlock(): the next move may begin.
fn unlock(s: &mut State) {
    s.groups.moving = None;
    if let Some((task, to)) = s.groups.moves.pop_front() {
        s.after(US, Event::Group(GroupEvent::Move(task, to)));
    }
}

/// sched_move_task(): the task leaves its queue and comes back, in its new group. A running task's
/// CPU looks at its run queue.
pub fn attach(task: TaskId, to: GroupId) {
    let is_there = with(|s| {
        let member = s.groups.members[task];
        let waits = s.groups.moving == Some(task) && member.css == to;
        if waits {
            unlock(s);
        }
        waits
    });
    if !is_there {
        return; // finish_move() was earlier
    }
    let here = with(|s| {
        let drawn = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
        race::place(s, drawn)
    });
    if with(|s| s.tasks[task].place == Place::Dead) {
        return;
    }
    change(here, task, |s| {
        let (pointer, memory) = (s.tasks[task].fields.task, s.groups.all[to].memory);
        // SAFETY: both are the machine's.
        unsafe { ffi::model_set_task_group(pointer, memory) };
        s.groups.members[task].tg = to;
    });
    with(|s| {
        if s.tasks[task].place == Place::Running {
            resched(s, s.tasks[task].cpu);
        }
    });
}

/// cgroup_threadgroup_rwsem: a task does not begin to exit while it moves.
pub fn finish_move(task: TaskId) {
    let _wakeup = race::pi_lock(task);
    let to = with(|s| (s.groups.moving == Some(task)).then(|| s.groups.members[task].css));
    if let Some(to) = to {
        attach(task, to);
    }
}
