//! Kinds of turns and their lengths, and the waits that are too long.

use crate::lengths::{debt, fair_turn, fair_vtime, within_quota};
use crate::look::Look;
use crate::policy::*;

/// The kind of turn that a task gets if it is queued now.
pub fn next_turn(l: &Look) -> i64 {
    if is_system(l) {
        return if l.turn_used < 4 * MS { SYSTEM } else { FAIR };
    }
    if debt(l) > 0 {
        return FAIR;
    }
    if l.turn_used < l.prompt {
        return PROMPT;
    }
    if has_rank(l) {
        return RANKED;
    }
    let in_filter = l.policy != POLICY_FAIR && has_credit(l) && l.mode == 0;
    if in_filter {
        FILTER
    } else {
        FAIR
    }
}

/// Functions with an invocation are ranked, if ranks are in force.
pub fn has_rank(l: &Look) -> bool {
    is_ranked(l) && l.has_inv != 0 && l.i_state != NONE && is_function(l)
}

/// The rest of the credit; never 0.
pub fn credit_left(l: &Look) -> i64 {
    (l.i_credit - l.i_used).max(1)
}

/// The length of a prompt turn.
pub fn prompt_turn(l: &Look) -> i64 {
    within_quota(l, since(l.prompt, l.turn_used).min(4 * MS))
}

/// The length of a turn of this kind, while `waiting` tasks wait in FAIR.
pub fn length(l: &Look, turn: i64, waiting: i64) -> i64 {
    match turn {
        SYSTEM => 4 * MS,
        PROMPT => prompt_turn(l),
        RANKED => within_quota(l, l.slice),
        FILTER if l.has_inv != 0 => within_quota(l, credit_left(l)),
        _ => fair_turn(l, waiting),
    }
}

/// Tasks that wait in FAIR, without pinned ones.
pub fn fair_waiting(l: &Look) -> i64 {
    l.waits_fair.max(0) + l.waits_outside.max(0)
}

/// A task waits for 5 s and has not had a ms.
pub fn waits_long(l: &Look) -> bool {
    l.starved_since != 0 && since(l.now, l.starved_since) > 5_000 * MS
}

/// A wait in FILTER that is too long is reported, once in a second.
pub fn report_overload(e: &mut Expected, wait: i64) {
    let l = &mut e.l;
    if l.mode != 0 || (wait as u64) < overload_wait(l) {
        return;
    }
    if l.overload_since != 0 && since(l.now, l.overload_told) < 1_000 * MS {
        return;
    }
    l.overload_told = l.now;
    if l.overload_since == 0 {
        l.overload_since = l.now;
    }
}

/// In fair-only mode the loader is told that overload is over, and again after 50 ms.
pub fn report_recovery(l: &mut Look) {
    let is_told = since(l.now, l.recovery_told) < 50 * MS;
    if l.mode != 0 && !is_told && expected_delay(l) as u64 <= l.recover_at as u64 {
        l.recovery_told = l.now;
    }
}

/// The wait that means overload: as the loader says, 10 s at most.
pub fn overload_wait(l: &Look) -> u64 {
    let guard = 10_000 * MS as u64;
    match l.overload_enabled {
        0 => guard,
        _ => guard.min(l.overload_at as u64),
    }
}

/// The delay that a new invocation would see in FILTER.
pub fn expected_delay(l: &Look) -> i64 {
    let work = if l.credit_avg != 0 {
        l.credit_avg
    } else {
        l.slice_ns
    };
    (l.demand - l.cpus).max(0) * work / l.cpus.max(1)
}

/// The words of FAIR that answers have.
pub fn place_in_fair(l: &Look) -> i64 {
    fair_vtime(l, fair_waiting(l))
}
