//! How long turns are, and where in FAIR they come.

use crate::look::Look;
use crate::policy::*;
use sfs_kernel_model::group_ffi::{self, GroupState};

/// No task waits in FILTER or FAIR for longer, ns: half of the kernel's watchdog, and less.
const GUARD: i64 = 10_000 * MS;
/// The most that virtual time may be ahead, in turns.
const TURNS_AHEAD: i64 = 16;
/// A turn ends at a tick, and so much too late.
const TICK: i64 = 4 * MS;

/// The CPU time that each of those who wait may have within the guard.
pub fn round_share(l: &Look, waiting: i64) -> i64 {
    GUARD * l.cpus / (waiting + 1)
}

/// At most the rest of the quota, and at least 1 ms.
pub fn within_quota(l: &Look, turn: i64) -> i64 {
    if l.has_limit == 0 || l.l_quota == 0 {
        return turn;
    }
    turn.min((l.l_quota - l.l_used).max(MS))
}

/// CPU time due to the tenant, in thousandths of a CPU.
pub fn due(l: &Look) -> i64 {
    match l.shares_weight {
        total if total > 0 => 1_000 * l.cpus * l.s_weight / total,
        _ => 0,
    }
}

/// A turn in FAIR: 20 ms, or 4 ms in fair-only mode; less if many wait, or if a tenant has many
/// tasks.
pub fn fair_turn(l: &Look, waiting: i64) -> i64 {
    let is_short = l.mode == 1 || l.policy == POLICY_FAIR;
    let turn = if is_short { 4 * MS } else { FAIR_TURN };
    let turn = turn.min(round_share(l, waiting));
    let many = l.has_share != 0 && l.s_runnable > 32 && l.shares_weight > 0;
    let turn = match many {
        true => turn.min((GUARD / 2 / 1_000 * due(l) / l.s_runnable).max(TICK)),
        false => turn,
    };
    within_quota(l, turn)
}

/// FAIR is due on a CPU after so long.
pub fn due_interval(l: &Look, waiting: i64) -> i64 {
    round_share(l, waiting).min(50 * MS)
}

/// The debt of the task's tenant, ns of CPU time; one that is alone has none.
pub fn debt(l: &Look) -> i64 {
    if l.has_share == 0 || l.s_weight >= l.shares_weight {
        return 0;
    }
    (-l.s_tokens).max(0)
}

/// The virtual time until it is paid.
pub fn debt_in_vtime(l: &Look) -> i64 {
    debt(l) * WEIGHT / weight_of_tenant(l)
}

fn weight_of_tenant(l: &Look) -> i64 {
    if l.s_weight == 0 {
        WEIGHT
    } else {
        l.s_weight
    }
}

/// The most that a sleeper saves up: a turn of its own.
pub fn saved_up(l: &Look) -> i64 {
    weighted(l, FAIR_TURN).max(FAIR_TURN)
}

/// The most that a task may be ahead of the others: 16 turns, or two of its own if that is more; never
/// more than a round.
pub fn ahead(l: &Look, waiting: i64) -> i64 {
    let most = weighted(l, 2 * FAIR_TURN).max(TURNS_AHEAD * FAIR_TURN);
    most.min(round_share(l, waiting))
}

/// The task's place in FAIR.
pub fn fair_vtime(l: &Look, waiting: i64) -> i64 {
    let own = if l.has_key != 0 {
        l.fair_vtime
    } else {
        l.vtime
    };
    let (earliest, latest) = (
        l.fair_now.wrapping_sub(saved_up(l)),
        l.fair_now.wrapping_add(ahead(l, waiting)),
    );
    let place = if before(own, earliest) {
        earliest
    } else if before(latest, own) {
        latest
    } else {
        own
    };
    let paid = l.fair_now.wrapping_add(debt_in_vtime(l));
    match debt_in_vtime(l) > 0 && before(place, paid) {
        true => paid,
        false => place,
    }
}

/// Where the tenant's line goes on: not further behind than a turn, nor further ahead than the turns
/// of its tasks.
pub fn line(l: &Look) -> i64 {
    let weight = weight_of_tenant(l);
    let turn = FAIR_TURN * WEIGHT / weight;
    let all = match l.shares_weight {
        total if total > 0 => FAIR_TURN * l.cpus * WEIGHT / total,
        _ => 0,
    };
    let turns = l.s_runnable.max(0) + l.s_runnable.max(0) / 4 + 2;
    let (earliest, latest) = (
        l.fair_now.wrapping_sub(turn.max(all)),
        l.fair_now.wrapping_add(turns.wrapping_mul(turn)),
    );
    if before(l.s_line, earliest) {
        earliest
    } else if before(latest, l.s_line) {
        latest
    } else {
        l.s_line
    }
}

/// The task books a turn in FAIR, in its tenant's line. Sets its virtual time.
pub fn book(l: &mut Look, group_weight: i64, turn: i64, waiting: i64) {
    l.fair_weight = group_weight;
    let place = fair_vtime(l, waiting);
    l.vtime = place;
    if l.has_share == 0 {
        return;
    }
    settle(l);
    let (at, booked) = (line(l), turn + TICK);
    l.booked = booked;
    l.s_line = at.wrapping_add(booked * WEIGHT / weight_of_tenant(l));
    // A line at 0 is none.
    if at != 0 && before(place, at) {
        l.vtime = at;
    }
}

/// The rest of the last turn goes back to the line; what was too much is charged.
pub fn settle(l: &mut Look) {
    let back = l.booked.abs() * WEIGHT / weight_of_tenant(l);
    l.s_line = match l.booked < 0 {
        true => l.s_line.wrapping_add(back),
        false => l.s_line.wrapping_sub(back),
    };
    l.booked = 0;
}

/// The weight of a task in the whole machine: its part of each group's.
pub fn group_weight(l: &Look, active: i64) -> i64 {
    let weight = l.weight.max(1) * WEIGHT / 100;
    within(((active & i64::MAX) >> 15) as u64, weight)
}

/// The weight of a tenant in the whole machine.
pub fn tenant_weight(id: i64) -> i64 {
    let mut state = GroupState::default();
    // SAFETY: writes to `state` only.
    match unsafe { group_ffi::model_state_of_group(id as u64, &mut state) } {
        true => within(state.parent, i64::from(state.weight) * WEIGHT / 100),
        false => 1,
    }
}

/// A weight in a group, as it is in the whole machine.
fn within(mut id: u64, mut weight: i64) -> i64 {
    for _ in 0..32 {
        let mut state = GroupState::default();
        // SAFETY: writes to `state` only.
        if id == 0 || !unsafe { group_ffi::model_state_of_group(id, &mut state) } {
            break;
        }
        if state.parent == 0 {
            break;
        }
        if state.active > 0 {
            weight = weight * i64::from(state.weight) / state.active;
        }
        id = state.parent;
    }
    weight.max(1)
}

/// A bucket of a tenant: what it is due in 25 ms, or what four credits take beyond that.
pub fn bucket(l: &Look, due: i64) -> i64 {
    let credits = (1_000 - due).max(0) * 4 * l.slice_ns / 1_000;
    (25 * MS * due / 1_000).max(credits)
}

/// The most debt that is remembered: 100 ms, for each CPU due.
pub fn longest_debt(due: i64) -> i64 {
    100 * MS * due.max(1_000) / 1_000
}
