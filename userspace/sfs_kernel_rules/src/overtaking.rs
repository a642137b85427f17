//! What arrivals may take from work that is past its deadline (`claim.bpf.h`).

use crate::look::Look;
use crate::policy::MS;
use crate::ranks::bucket_start;

/// One part in so many of all CPUs.
const PART: i64 = 8;
/// So much of that part in advance, ns.
const AHEAD: i64 = 200 * MS;

/// How long that part pays for a turn, ns.
fn time_of(l: &Look, turn: i64) -> i64 {
    turn * PART / l.cpus.max(1)
}

/// Whether the budget lets the task preempt overdue work. It then pays for its slice, which is twice
/// the cost of its completion.
pub fn take(l: &mut Look) -> bool {
    let turn = (2 * bucket_start(l.rank)).clamp(8 * MS, 20 * MS);
    let until = l.overtaken.max(l.now) + time_of(l, turn);
    if until > l.now + AHEAD {
        return false;
    }
    l.overtaken = until;
    (l.taken, l.slice, l.slice_end) = (turn, turn, l.i_used + turn);
    true
}

/// The task has used so much CPU time by rank.
pub fn charge(l: &mut Look, delta: i64) {
    l.ranked_used += delta;
    l.taken = (l.taken - delta).max(0);
}

/// The turn is over: what it has not used of it goes back.
pub fn give_back(l: &mut Look) {
    l.overtaken -= time_of(l, l.taken);
    l.taken = 0;
}
