//! Invariants of credit: an invocation is charged for the CPU time that it uses, no less and no
//! more, and keeps its credit no longer than it lasts.

use sfs_kernel_model::ffi::{self, Credit};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, Place, TaskId};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// An invocation when it was looked at last: its number, what it was charged for, and its task's
/// CPU time, in ns; and whether it had credit that it had used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    number: u32,
    used_ns: u64,
    cpu_time_ns: u64,
    has_too_much: bool,
}

thread_local! {
    static SEEN: RefCell<BTreeMap<TaskId, Seen>> = const { RefCell::new(BTreeMap::new()) };
}

/// Checks both, for processes with one thread whose task does not run. Not within [`with`].
pub fn check() {
    let tasks: Vec<_> = with(|s| {
        let rests = |task: &&TaskId| s.tasks[**task].place != Place::Running;
        let live = s.live.iter().filter(rests);
        live.map(|&task| (task, s.tasks[task].fields)).collect()
    });
    let mut seen = BTreeMap::new();
    for (task, fields) in tasks {
        let mut credit = Credit::default();
        // SAFETY: the task is one of the machine's.
        if !unsafe { ffi::model_credit_of(fields.task, &mut credit) } {
            continue;
        }
        let has_too_much = credit.has_credit && credit.used_ns >= credit.credit_ns;
        let now = Seen {
            number: credit.number,
            used_ns: credit.used_ns,
            // SAFETY: the task's memory lives as long as the machine.
            cpu_time_ns: unsafe { *fields.cpu_time_ns },
            has_too_much,
        };
        if has_too_much && !may_be_new(task, now) {
            with(|s| {
                s.finding(format!(
                    "task {task} has credit, though it has used {} us of {}",
                    credit.used_ns / 1_000,
                    credit.credit_ns / 1_000
                ))
            });
        }
        compare(task, now);
        seen.insert(task, now);
    }
    SEEN.with(|cell| *cell.borrow_mut() = seen);
}

/// Where callbacks interleave, a request that begins between the two halves of a charge gets credit,
/// and the CPU time of that charge. The next charge ends it: one that has been charged twice, with
/// credit, is no such case.
fn may_be_new(task: TaskId, now: Seen) -> bool {
    let before = SEEN.with(|cell| cell.borrow().get(&task).copied());
    let was_charged = before
        .filter(|before| before.has_too_much && before.number == now.number)
        .is_some_and(|before| before.used_ns != now.used_ns);
    race::is_on() && !was_charged
}

/// The same invocation was charged for the CPU time since the last look. Where processes start
/// threads, one may have come and gone meanwhile; where callbacks interleave, an invocation may
/// begin between the two.
fn compare(task: TaskId, now: Seen) {
    if race::is_on() || with(|s| s.habits.has_families) {
        return;
    }
    let before = SEEN.with(|cell| cell.borrow().get(&task).copied());
    let Some(before) = before.filter(|before| before.number == now.number) else {
        return;
    };
    let (charged, used) = (
        now.used_ns.wrapping_sub(before.used_ns),
        now.cpu_time_ns - before.cpu_time_ns,
    );
    if charged != used {
        with(|s| {
            s.finding(format!(
                "task {task} is charged for {charged} ns, and has used {used} ns"
            ))
        });
    }
}
