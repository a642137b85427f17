//! Hints: what the platform says about the requests that processes serve.

use crate::look::{look, Look};
use crate::policy::{is_function, Expected, ENDED, HINT, UNIT_CGROUP};
use crate::sandboxes;
use crate::stats::Stats;
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, Place, TaskId, FIRST_PID};

/// A hint.
#[derive(Debug, Clone, Copy)]
pub struct Hint {
    /// Of a process.
    pub pid: i32,
    /// ns; 0: now.
    pub arrived_at: u64,
    /// 0: not named.
    pub function: u64,
    /// CPU time that it will need, ns; 0: unknown.
    pub service_ns: u64,
}

/// What hints are to bring about.
#[derive(Debug)]
pub struct Before {
    /// Tasks, and what was kept of them.
    tasks: Vec<(Hint, Option<(TaskId, Look)>)>,
}

fn see(pid: i32) -> Option<(TaskId, Look)> {
    let task = usize::try_from(pid - FIRST_PID).ok()?;
    let (pointer, cpu) = with(|s| {
        let t = s.tasks.get(task).filter(|t| t.place != Place::Dead)?;
        Some((t.fields.task, t.cpu))
    })?;
    Some((task, look(pointer, cpu)))
}

/// Looks at the tasks before the hints are applied; `None` where callbacks interleave.
pub fn before(hints: &[Hint]) -> Option<Before> {
    let tasks = hints.iter().map(|&hint| (hint, see(hint.pid)));
    (!race::is_on() && crate::look::agrees()).then(|| Before {
        tasks: tasks.collect(),
    })
}

/// Returns what is kept of the task as the hint finds it, which looks first where the task is: if it
/// has come to another sandbox, or to none, with that one. Nothing is kept of a task for which there
/// was no memory.
fn found(task: TaskId, was: &Look) -> Look {
    let mut found = *was;
    if was.only_sandboxes != 0 && was.has_context != 0 {
        found.sandbox = sandboxes::of(task) as i64;
    }
    if found.sandbox != was.sandbox {
        found.has_inv = i64::from(found.sandbox != 0);
    }
    found
}

/// Compares what was done: hints applied, of processes that are gone, and of no function.
pub fn after(before: &Before, (applied, dead, foreign): (u32, u32, u32)) {
    let mut expected = (0, 0, 0);
    let known = || before.tasks.iter().filter_map(|(_, of)| of.as_ref());
    let has_moved = |task, was: &Look| found(task, was).sandbox != was.sandbox;
    if known().any(|(task, was)| was.unit == UNIT_CGROUP && has_moved(*task, was)) {
        return; // it has joined another invocation, which may be that of other hints
    }
    let units: Vec<i64> = known().map(|(_, was)| was.inv_is).collect();
    for (hint, of) in &before.tasks {
        let Some((task, was)) = of else {
            expected.1 += 1;
            continue;
        };
        let found = found(*task, was);
        if found.has_inv == 0 || !is_function(&found) || was.i_state == ENDED {
            expected.2 += 1;
            continue;
        }
        expected.0 += 1;
        let is_alone = units.iter().filter(|&&unit| unit == was.inv_is).count() == 1;
        if is_alone && !has_moved(*task, was) {
            check(*task, hint, was);
        }
    }
    if (applied, dead, foreign) != expected {
        let is = (applied, dead, foreign);
        with(|s| {
            s.finding(format!(
                "hints applied, for no process and for no function are {is:?}, and should be \
                 {expected:?}"
            ))
        });
    }
}

fn check(task: TaskId, hint: &Hint, was: &Look) {
    let mut e = Expected::new(*was, Stats::default());
    let Some((_, is)) = see(hint.pid) else { return };
    e.l.now = is.now;
    let at = match hint.arrived_at {
        0 => is.now,
        at => at as i64,
    };
    e.cross(HINT, at);
    if e.begun {
        e.l.i_function = crate::names::identity(&e.l);
    }
    if hint.arrived_at != 0 {
        e.l.i_arrived = hint.arrived_at as i64;
    }
    if hint.function != 0 {
        e.l.i_function = (hint.function | 1 << 63) as i64;
    }
    e.l.i_service = hint.service_ns as i64;
    let words = |l: &Look| {
        [
            l.i_arrived,
            l.i_credit,
            l.i_used,
            l.i_ended,
            l.i_function,
            l.i_service,
            l.i_state,
            l.i_open,
            l.i_kinds,
            l.i_seq,
            l.i_graced,
            l.i_quiet,
            l.i_burst,
            l.slept,
            l.woken_at,
        ]
    };
    if words(&is) != words(&e.l) {
        with(|s| {
            s.finding(format!(
                "a hint for task {task} leaves {:?}, and should leave {:?}",
                words(&is),
                words(&e.l)
            ))
        });
    }
}
