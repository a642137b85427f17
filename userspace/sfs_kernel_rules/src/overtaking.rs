//! Claims of CPUs, and what arrivals may take from work that is past its deadline (`claim.bpf.h`,
//! `rank.bpf.h`).

use crate::kinds::CLAIMS;
use crate::look::Look;
use crate::policy::{before, MS};
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

/// The task has a claim: for so much CPU time of its own, it goes before all waiting work.
pub fn begin(l: &mut Look) {
    l.claim_end = l.charged + l.slice;
    l.queue_key = l.queue_key.wrapping_sub(CLAIMS);
}

/// Whether its claim is not used up.
fn has_claim(l: &Look) -> bool {
    before(l.charged, l.claim_end)
}

/// It goes on, for the rest of its claim, before all waiting work but new claims.
pub fn goes_on(l: &mut Look) {
    if !has_claim(l) {
        return;
    }
    let left = l.claim_end - l.charged;
    l.queue_key = l.queue_key.wrapping_sub(CLAIMS / 4 * 3);
    if l.taken != 0 || l.slice > left {
        (l.slice, l.slice_end) = (left, l.i_used + left);
    }
}

/// It leaves its CPU. A claim lasts while it could run; if it lost its CPU to another claim, only
/// one that is paid for.
pub fn stop(l: &mut Look, is_runnable: bool) {
    let lasts = has_claim(l) && (l.outranked == 0 || l.taken != 0);
    if !is_runnable || !lasts {
        end(l);
    }
}

/// The claim is over: what it has not used of what it has taken goes back.
pub fn end(l: &mut Look) {
    l.claim_end = 0;
    give_back(l);
}

fn give_back(l: &mut Look) {
    l.overtaken -= time_of(l, l.taken);
    l.taken = 0;
}
