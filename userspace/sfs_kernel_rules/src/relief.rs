//! dispatch() while a tenant is in debt, or the loader does not answer: the first task of FILTER, or
//! by rank, that must not go before others gets a turn in FAIR, and FAIR's first that was queued
//! before its tenant got into debt a later place.

use crate::look::{ask, look, Answers, Look};
use crate::policy::{before, since, FAIR, POLICY_LEARNED};
use crate::queues::{own, FAIR as FAIR_QUEUE, FILTER as FILTER_QUEUE, RANKED as RANKED_QUEUE};
use crate::ticks::loader_is_late;
use crate::turns::overload_wait;
use crate::watch::Call;
use sfs_kernel_model::state::{with, TaskId};

/// Checks the first tasks that it has found. `l`: of the machine, at the choice.
pub fn check(call: &Call, l: &Look) {
    let Some(queues) = &call.was.queues else {
        return;
    };
    let cpu = call.cpu as i64;
    let is_late = loader_is_late(l);
    for (id, late) in [
        (FILTER_QUEUE, is_late),
        (own(FILTER_QUEUE, cpu), is_late),
        (RANKED_QUEUE, false),
    ] {
        if id == RANKED_QUEUE && l.policy != POLICY_LEARNED {
            continue;
        }
        if let Some(first) = queues.get(id) {
            check_early(call, first.head, late);
        }
    }
    if let Some(first) = queues.get(FAIR_QUEUE) {
        check_fair(call, first.head, first.vtime);
    }
}

fn see(task: TaskId) -> Option<(Look, Answers)> {
    let (pointer, cpu) = with(|s| (s.tasks[task].fields.task, s.tasks[task].cpu));
    let is = look(pointer, cpu);
    (is.has_context != 0).then(|| (is, ask(pointer, cpu)))
}

fn check_early(call: &Call, task: TaskId, late: bool) {
    let Some((is, answers)) = see(task) else {
        return;
    };
    let has_waited = late && since(is.now, is.queued_at) as u64 >= overload_wait(&is);
    if (answers.debt > 0 || has_waited) && is.turn != FAIR {
        call.finding(&format!(
            "task {task} is first, and must go to FAIR: its tenant has a debt of {} ns",
            answers.debt
        ));
    }
}

fn check_fair(call: &Call, task: TaskId, was: i64) {
    let Some((_, answers)) = see(task) else {
        return;
    };
    let is_moved = answers.debt > 0 && answers.waits_long == 0 && answers.has_credit != 0;
    let paid = call.was.look.fair_now.wrapping_add(answers.debt_in_vtime);
    if is_moved && before(was, paid) && place_of(task) == was {
        call.finding(&format!(
            "task {task} is first in FAIR at {was}, and its tenant's debt is paid at {paid}"
        ));
    }
}

/// The task's virtual time, as its queue has it.
fn place_of(task: TaskId) -> i64 {
    // SAFETY: the task's memory lives as long as the machine.
    with(|s| unsafe { *s.tasks[task].fields.vtime } as i64)
}
