//! FAIR's virtual time is sane: a sleeper saves up the time of one turn, and a key of the ranked
//! queue is not taken for virtual time.

use crate::ffi;
use crate::race;
use crate::sched::{LOCAL, LOCAL_ON};
use crate::state::{with, TaskId};
use crate::timeline::turn_of;

/// `enum turn`.
const TURN_FAIR: u32 = 0;
const TURN_RANKED: u32 = 2;
/// Virtual time moves on between a task's turn and its next place, ns.
const SLACK_NS: i64 = 20_000_000;

/// The kernel half has queued a task. If it goes to a CPU at once, in FAIR, it comes with a virtual
/// time that is at most a turn behind. Where callbacks interleave, virtual time may move on
/// meanwhile, so nothing is checked. Not within [`with`].
pub fn check(task: TaskId) {
    if race::is_on() {
        return;
    }
    let turn = turn_of(task);
    let pointer = with(|s| {
        let t = &mut s.tasks[task];
        t.promise.was_ranked |= turn == TURN_RANKED;
        let is_local = |queue: u64| queue == LOCAL || queue & LOCAL_ON == LOCAL_ON;
        let goes_at_once = t.direct.is_some_and(|(queue, _)| is_local(queue));
        (goes_at_once && turn == TURN_FAIR).then_some(t.fields.task)
    });
    let Some(pointer) = pointer else { return };
    // SAFETY: the task is one of the machine's.
    let (behind, most) = unsafe {
        (
            ffi::model_behind_fair(pointer),
            ffi::model_saves_up(pointer),
        )
    };
    if behind <= most as i64 + SLACK_NS {
        return;
    }
    with(|s| {
        let was = if s.tasks[task].promise.was_ranked {
            ", after turns by rank"
        } else {
            ""
        };
        s.finding(format!(
            "task {task} begins a turn in FAIR {} us behind virtual time{was}",
            behind / 1_000
        ));
    });
}
