//! A task that is cut short in a system call leaves the kernel first (`leave.bpf.h`).

use crate::look::Look;
use crate::policy::*;
use crate::turns::prompt_turn;

/// CPU time that it gets for that, ns; and to exit.
const LENGTH: i64 = MS;
const OF_EXIT: i64 = 20 * MS;
/// PF_EXITING.
const EXITING: i64 = 4;

/// It was cut short in an ordinary turn, for which it is queued again, and is in a system call; or
/// it wakes up while it exits. Not if it is the last one of its CPU.
pub fn must_leave(l: &Look, turn: i64, wakes_up: bool, is_last: bool) -> bool {
    let is_ordinary = !matches!(turn, SYSTEM | PROMPT) && !is_last;
    let may = is_ordinary && l.waits_since == 0 && l.yielded == 0;
    may && match wakes_up {
        true => l.flags & EXITING != 0,
        false => l.stopped_on >= 0 && turn == l.turn && l.in_call != 0,
    }
}

/// It gets a turn for that.
pub fn begin(l: &mut Look, turn: i64) {
    (l.leaves, l.left_turn) = (1, turn);
    let length = match l.flags & EXITING {
        0 => LENGTH,
        _ => OF_EXIT,
    };
    (l.turn, l.prompt, l.queued_at) = (PROMPT, l.turn_used + length, 0);
    l.granted = prompt_turn(l);
}

/// Its turn is for that.
fn leaves(l: &Look) -> bool {
    l.turn == PROMPT && l.leaves != 0
}

/// The turn that its CPU time is charged as.
pub fn charged_turn(l: &Look) -> i64 {
    match leaves(l) {
        true => l.left_turn,
        false => l.turn,
    }
}

/// Its turn is short, and no other short turn may cut it short.
pub fn has_short_turn(l: &Look) -> bool {
    matches!(l.turn, SYSTEM | PROMPT) && !leaves(l)
}
