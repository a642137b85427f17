//! tick(): which turns end before their slice does; and running(): which end as they begin.

use crate::accounts::{join, may_serve_outside, Left, JUDGED, SHARES, SHARE_OF_JUDGED};
use crate::kinds::{self, CLAIMS};
use crate::lengths::{debt, due_interval};
use crate::look::{look, Look};
use crate::policy::*;
use crate::queues::{self, first_for, head, own};
use crate::ranks;
use crate::shards;
use crate::turns::{self, prompt_turn};
use crate::watch::Call;
use sfs_kernel_model::state::{with, CpuId};

/// SCX_KICK_PREEMPT.
const PREEMPT: u64 = 2;
/// A head whose tenant is in debt does not count for so long (SHARE_PATIENCE_NS).
const PATIENCE: i64 = 1_000 * MS;

/// A short turn waits that the CPU may give: it is the first of its queue.
pub fn short_waits(cpu: CpuId) -> bool {
    let may = |queue| with(|s| head(s, queue).is_some_and(|task| s.may_run(task, cpu)));
    may(queues::SYSTEM) || may(queues::PROMPT)
}

/// Outside work waits that the CPU should serve before functions.
pub fn outside_is_due(l: &mut Look) -> bool {
    may_serve_outside(l) && outside_waits(l)
}

fn outside_waits(l: &Look) -> bool {
    let own = own(queues::OUTSIDE, l.cpu);
    queues::seen(l, queues::OUTSIDE) > 0 || queues::seen(l, own) > 0
}

/// FILTER has work that the CPU might run: its own, or of any shard.
pub fn filter_waits(l: &Look) -> bool {
    let mut shards = 0..l.nr_shards.max(1) as u64;
    queues::seen(l, own(queues::FILTER, l.cpu)) > 0
        || shards.any(|n| queues::seen(l, queues::FILTER + n) > 0)
}

/// The first of the ranked queue may run here, or pinned ranked work waits here.
pub fn ranked_head_waits(l: &Look) -> bool {
    head_waits(l, queues::RANKED) || with(|s| queues::length(s, own(queues::RANKED, l.cpu)) > 0)
}

pub fn head_waits(l: &Look, queue: u64) -> bool {
    let cpu = l.cpu as CpuId;
    with(|s| head(s, queue).is_some_and(|task| s.may_run(task, cpu)))
}

/// Functions wait for the CPU, in any queue.
pub fn functions_wait(l: &Look) -> bool {
    let has = |queue| queues::seen(l, queue) > 0;
    let ranked = || has(queues::RANKED) || has(own(queues::RANKED, l.cpu));
    filter_waits(l)
        || has(queues::FAIR)
        || has(own(queues::FAIR, l.cpu))
        || (l.policy == POLICY_LEARNED && ranked())
}

/// A head of FAIR has waited so long that the CPU has to serve it before FILTER.
pub fn fair_is_due(l: &Look) -> bool {
    let queues = [queues::FAIR, queues::OUTSIDE];
    let own_queues = queues.map(|queue| own(queue, l.cpu));
    let all = queues.into_iter().chain(own_queues);
    let waiting: i64 = all.clone().map(|queue| queues::seen(l, queue)).sum();
    if waiting == 0 {
        return false;
    }
    let interval = due_interval(l, waiting);
    let longest = all.map(|queue| counted_wait(l, queue)).max();
    since(l.now, l.c_served_at) >= interval && longest.unwrap_or(0) >= interval
}

/// The wait of a queue's head; none for a while if its tenant is in debt.
fn counted_wait(l: &Look, queue: u64) -> i64 {
    let wait = queues::head_wait(queue, l.now);
    let pointer = with(|s| head(s, queue).map(|task| s.tasks[task].fields.task));
    let is_in_debt = || pointer.is_some_and(|p| debt(&look(p, l.cpu as CpuId)) > 0);
    if wait < PATIENCE && debts_are_known(l) && is_in_debt() {
        0
    } else {
        wait
    }
}

/// The loader has not answered a report of overload in 50 ms.
pub fn loader_is_late(l: &Look) -> bool {
    l.overload_since != 0 && l.mode == 0 && since(l.now, l.overload_since) > 50 * MS
}

/// A tenant is in debt, or was so in the last 100 ms.
pub fn debts_are_known(l: &Look) -> bool {
    l.debt_at != 0 && since(l.now, l.debt_at) < 100 * MS
}

/// FAIR work is due. The tick's own charge may pay the debt that its head's tenant had, and so
/// decide; then what the tick did stands.
fn fair_becomes_due(call: &Call) -> bool {
    let [before, after] = [&call.was.answers, &call.answers].map(|a| a.due_queue != 0);
    if before == after {
        before
    } else {
        call.is.granted == 0
    }
}

/// The turn ends at this tick.
fn is_over(call: &Call, l: &mut Look) -> bool {
    let is_short = matches!(l.turn, SYSTEM | PROMPT);
    let local = with(|s| !s.cpus[call.cpu].local.is_empty());
    if !is_short && (short_waits(call.cpu) || (l.c_first != 0 && local)) {
        return true;
    }
    if !is_short && l.c_turn_due == 0 && outside_is_due(l) {
        return true;
    }
    if local && call.was.answers.elsewhere != 0 {
        return true;
    }
    if l.turn != FAIR && debt(l) > 0 && functions_wait(l) {
        return true;
    }
    match l.turn {
        FILTER => {
            !has_credit(l)
                || l.mode != 0
                || (loader_is_late(l) && filter_waits(l))
                || fair_becomes_due(call)
        }
        RANKED => {
            let is_lost = claimer_waits(l) && ranked_head_waits(l);
            !is_ranked(l) || is_lost || fair_becomes_due(call)
        }
        FAIR => l.c_turn_due == 0 && (filter_waits(l) || ranked_head_waits(l)),
        _ => false,
    }
}

/// What a tick leaves.
pub fn expect(call: &Call, e: &mut Expected) -> Left {
    e.note_runnable(false);
    e.charge(call.was.answers.functions_wait != 0);
    let tenant = e.l.tenant;
    if tenant == 0 {
        join(call, e);
    }
    // The tenant's tokens have been charged.
    let l = &mut e.l;
    if call.is.tenant != tenant {
        (l.s_tokens, l.s_weight, l.has_share) =
            (call.is.s_tokens, call.is.s_weight, call.is.has_share);
        l.shares_weight = call.is.shares_weight;
    }
    (l.has_limit, l.l_quota) = (call.is.has_limit, call.is.l_quota);
    (l.l_used, l.limit) = (call.is.l_used, call.is.limit);
    (l.may_be_held, l.exits_at) = (call.is.may_be_held, call.is.exits_at);
    let is_parked = l.may_be_held != 0 && call.answers.out_of_quota != 0;
    if is_over(call, l) || is_parked {
        l.granted = 0;
    } else if l.turn == PROMPT && l.turn_used < l.prompt && l.c_first == 0 && !short_waits(call.cpu)
    {
        l.granted = prompt_turn(l);
    }
    if l.turn == RANKED && l.has_inv != 0 {
        ranks::look_up(l);
        kinds::show(l);
    }
    report_overload(e);
    turns::report_recovery(&mut e.l);
    let mut left = vec!["has_exit", "stats", "cgroup", "l_used"];
    if e.l.nr_shards > 1 {
        left.extend(["overload_since", "overload_told"]);
    }
    left.extend(SHARE_OF_JUDGED);
    if call.is.tenant != tenant {
        left.extend(SHARES);
        left.extend(JUDGED);
    }
    Left(left)
}

/// FILTER's first tasks may have waited for too long.
fn report_overload(e: &mut Expected) {
    for queue in [queues::FILTER, own(queues::FILTER, e.l.cpu)] {
        let since_when = with(|s| head(s, queue).map_or(0, |task| queues::queued_at(s, task)));
        if since_when != 0 {
            turns::report_overload(e, since(e.l.now, since_when));
        }
    }
}

/// A task that has claimed a CPU waits in rank order, before this one.
fn claimer_waits(l: &Look) -> bool {
    let queues = [queues::RANKED, own(queues::RANKED, l.cpu)];
    let heads = queues.map(|queue| with(|s| head(s, queue).map(|task| s.tasks[task].fields.task)));
    let keys = heads.into_iter().flatten();
    let mut keys = keys.map(|p| look(p, l.cpu as CpuId).vtime);
    keys.any(|key| {
        before(key, l.queue_key) && before(key.wrapping_add(CLAIMS / 2), l.sharing_clock)
    })
}

/// The task that begins was picked without a call of dispatch(), which would have chosen another
/// one: it gives way.
pub fn gives_way(call: &Call, e: &mut Expected) {
    let (was, l) = (&call.was.look, &mut e.l);
    let (passed, asked) = (was.c_local_short != 0, was.c_called != 0);
    let gives_way = if l.c_short != 0 || ((asked || l.c_turn_due != 0) && !passed) {
        false
    } else {
        passed
            || short_waits(call.cpu)
            || outside_is_due(l)
            || (l.turn == RANKED && claimer_waits(l))
            || (l.turn == FAIR && (filter_head_waits(l) || ranked_head_waits(l)))
    };
    let is_told = call.kicks.contains(&(call.cpu, PREEMPT));
    if gives_way != is_told {
        call.finding(match gives_way {
            true => "other work goes first, and its CPU is not told",
            false => "its CPU is told to run other work, and none goes first",
        });
    }
}

/// The CPU can certainly run FILTER's next task.
pub fn filter_head_waits(l: &Look) -> bool {
    with(|s| queues::length(s, own(queues::FILTER, l.cpu)) > 0)
        || with(|s| first_for(s, queues::FILTER, l.cpu as CpuId)).is_some()
            && l.nr_shards <= 1
            && head_waits(l, queues::FILTER)
        || (l.nr_shards > 1 && head_waits(l, shards::own(l)))
}
