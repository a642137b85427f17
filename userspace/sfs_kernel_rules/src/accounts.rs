//! What a callback leaves is what the rules expect, word by word.

use crate::look::Look;
use crate::names;
use crate::policy::{self, has_credit, is_function, is_system, Expected, *};
use crate::queues::{self, OUTSIDE};
use crate::stats::counter;
use crate::turns::{self, report_recovery};
use crate::watch::{Call, Callback};
use crate::{functions, kinds, leaving, lengths, ranks, shares, ticks};
use sfs_kernel_model::state::with;
use sfs_kernel_model::tasks::DEAD;

/// The words of the share of the task's tenant.
const TENANT_SHARE: [&str; 13] = [
    "s_tokens",
    "s_clock",
    "s_filled_at",
    "s_usable",
    "s_weight",
    "s_runnable",
    "s_line",
    "s_used",
    "s_filter",
    "s_denied",
    "s_second",
    "s_reports",
    "has_share",
];

/// Words of groups and tenants that are not stated here: `group_checks` and `shares` have them.
pub const SHARES: [&str; 18] = [
    "s_tokens",
    "s_clock",
    "s_filled_at",
    "s_usable",
    "s_weight",
    "s_runnable",
    "s_line",
    "s_used",
    "s_filter",
    "s_denied",
    "s_second",
    "s_reports",
    "has_share",
    "shares_clock",
    "shares_weight",
    "debt_at",
    "l_used",
    "booked",
];
/// Those of the tenant by which an invocation is judged.
pub const JUDGED: [&str; 12] = [
    "j_tenant",
    "j_has",
    "j_window",
    "j_arrivals",
    "j_granted",
    "j_tokens",
    "j_clock",
    "j_filled_at",
    "j_usable",
    "j_weight",
    "j_runnable",
    "j_line",
];
/// The same without what the boundary changes.
pub const SHARE_OF_JUDGED: [&str; 7] = [
    "j_tokens",
    "j_clock",
    "j_filled_at",
    "j_usable",
    "j_weight",
    "j_runnable",
    "j_line",
];
/// Words that a callback may change in a way that is stated elsewhere.
pub struct Left(pub Vec<&'static str>);

impl Left {
    pub fn and(mut self, more: &[&'static str]) -> Self {
        self.0.extend(more);
        self
    }
}

/// Checks a callback.
pub fn check(call: &Call) {
    let was = &call.was.look;
    let mut e = Expected::new(*was, call.was.stats);
    e.l.now = call.is.now;
    // A task may have come to another sandbox: another invocation is looked at.
    if was.sandbox != call.is.sandbox || (was.inv_is != call.is.inv_is && was.has_context != 0) {
        return;
    }
    let left = match call.callback {
        Callback::Runnable => runnable(call, &mut e),
        Callback::Stopping => stopping(call, &mut e),
        Callback::Quiescent => quiescent(call, &mut e),
        Callback::Yield => {
            (e.l.yielded, e.l.prompt, e.l.granted) = (1, 0, 0);
            Left(vec![])
        }
        Callback::ExitTask => exit_task(call, &mut e),
        Callback::Exec => exec(&mut e),
        Callback::EnterAccept => enter_accept(&mut e),
        Callback::LeaveAccept => leave_accept(call, &mut e),
        Callback::Receive => receive(call, &mut e),
        Callback::Running => running(call, &mut e),
        Callback::Tick => ticks::expect(call, &mut e),
        Callback::Enqueue => kinds::expect(call, &mut e),
        Callback::SelectCpu => select_cpu(call, &mut e),
        Callback::InitTask => return init_task(call),
        // A task begins where FAIR is.
        Callback::Enable => {
            e.l.vtime = e.l.fair_now;
            Left(vec![])
        }
        Callback::Dispatch | Callback::Release => return,
    };
    if e.begun {
        e.l.i_function = names::identity(&e.l);
    }
    compare(call, &mut e, &left);
    functions::compare(call, &e);
}

fn compare(call: &Call, e: &mut Expected, left: &Left) {
    // A full ring buffer, and a tenant that ends very many invocations, are not stated.
    for counter in [counter::UNLEARNED, counter::LOST_EVENTS] {
        e.stats.counters[counter] = call.stats.counters[counter];
    }
    let (is, expected) = (call.is.words(), e.l.words());
    for (n, name) in Look::NAMES.iter().enumerate() {
        if is[n] != expected[n] && !left.0.contains(name) {
            let before = call.was.look.words()[n];
            call.finding(&format!(
                "{name} is {} after {before}, and should be {}",
                is[n], expected[n]
            ));
        }
    }
    if call.stats != e.stats && !left.0.contains(&"stats") {
        let both = call.stats.counters.iter().zip(e.stats.counters);
        let off = both.enumerate().find(|(_, (is, expected))| *is != expected);
        call.finding(&match off {
            Some((n, (is, expected))) => format!("counter {n} is {is}, and should be {expected}"),
            None => "a queueing delay is in the wrong bucket".to_owned(),
        });
    }
}

fn select_cpu(call: &Call, e: &mut Expected) -> Left {
    let finds_idle = call.was.answers.elsewhere != 0;
    e.l.chose_idle = i64::from(finds_idle);
    e.l.handed_over = i64::from(!finds_idle && kinds::is_handed_over(call));
    Left(vec![])
}

fn runnable(call: &Call, e: &mut Expected) -> Left {
    let wakeup = call.was.number & policy::WAKEUP != 0;
    let fresh = e.l.fresh != 0;
    let borrows = queues::head_wait(OUTSIDE, e.l.now) < 4 * MS;
    e.note_runnable(wakeup);
    if wakeup && e.l.has_inv != 0 && is_function(&e.l) {
        ranks::pay_by_sleep(&mut e.l);
    }
    if wakeup || (fresh && !is_function(&e.l)) {
        e.begin_activity(borrows);
    }
    if wakeup && is_system(&e.l) {
        e.count(counter::SYSTEM_WAKEUPS);
    } else if wakeup && has_credit(&e.l) {
        e.count(counter::IO_RETURNS);
    }
    join(call, e);
    let left = Left(vec!["cgroup", "limit", "has_limit", "l_quota", "l_used"]);
    if e.l.tenant == call.was.look.tenant {
        return left;
    }
    join_share(call, e);
    left.and(&TENANT_SHARE).and(&["booked"])
}

/// The task is runnable: what counts it.
pub fn join(call: &Call, e: &mut Expected) {
    let function = is_function(&e.l);
    if function && e.l.active == 0 {
        e.l.active = kinds::counted_in(call.task, e.l.weight);
    }
    if function && e.l.tenant == 0 {
        e.l.tenant = call.answers.tenant_of;
    }
    if has_credit(&e.l) && e.l.policy != POLICY_FAIR && e.l.in_demand == 0 {
        e.l.in_demand = 1;
        e.l.demand += 1;
    }
    if e.l.policy == POLICY_LEARNED && e.l.has_inv != 0 && function && e.l.is_present == 0 {
        e.l.is_present = 1;
        e.l.present += 1;
    }
}

/// The task is not runnable any more: nothing counts it.
pub fn leave(e: &mut Expected) {
    e.leave_demand();
    if e.l.is_present != 0 {
        e.l.is_present = 0;
        e.l.present -= 1;
    }
    (e.l.active, e.l.tenant) = (0, 0);
    report_recovery(&mut e.l);
}

/// The task waits in no queue.
pub fn leave_queue(l: &mut Look) {
    if let Some(count) = queues::counted(l, l.queue) {
        *count -= 1;
    }
    l.queue = 0;
    if l.first_on != 0 {
        l.c_first -= i64::from(l.first_on == l.cpu + 1);
        l.first_on = 0;
    }
}

/// The tenant that counts the task from now on gets what was due to it, and its weight counts.
fn join_share(call: &Call, e: &mut Expected) {
    if e.l.j_has == 0 || e.l.j_tenant != call.is.tenant {
        return copy_share(call, e);
    }
    let weight = lengths::tenant_weight(e.l.j_tenant);
    let l = &mut e.l;
    let mut share = of_judged(l);
    let runnable = share.s_runnable;
    shares::fill(&mut share, weight, runnable);
    share.s_runnable += 1;
    if runnable == 0 {
        share.shares_weight += weight - share.s_weight;
        share.s_weight = weight;
    }
    to_judged(l, &share);
}

/// The tenant counts the task no more, and its turn in FAIR is given back.
fn leave_share(call: &Call, e: &mut Expected) {
    let l = &mut e.l;
    if l.has_share == 0 || l.j_tenant != (l.tenant & i64::MAX) || call.is.j_tenant != l.j_tenant {
        l.booked = call.is.booked;
        return copy_share(call, e);
    }
    if l.booked != 0 {
        lengths::settle(l);
    }
    let mut share = *l;
    let (weight, runnable) = (share.s_weight, share.s_runnable);
    shares::fill(&mut share, weight, runnable);
    share.s_runnable -= 1;
    if runnable == 1 {
        share.shares_weight -= share.s_weight;
        share.s_weight = 0;
    }
    to_judged(l, &share);
}

/// What is not stated.
fn copy_share(call: &Call, e: &mut Expected) {
    let is = &call.is;
    to_judged(&mut e.l, &of_judged(is));
    (e.l.j_tenant, e.l.j_has) = (is.j_tenant, is.j_has);
    (e.l.j_window, e.l.j_arrivals, e.l.j_granted) = (is.j_window, is.j_arrivals, is.j_granted);
}

/// The share by which an invocation is judged, in place of the task's own.
fn of_judged(l: &Look) -> Look {
    Look {
        s_tokens: l.j_tokens,
        s_clock: l.j_clock,
        s_filled_at: l.j_filled_at,
        s_usable: l.j_usable,
        s_weight: l.j_weight,
        s_runnable: l.j_runnable,
        s_line: l.j_line,
        ..*l
    }
}

fn to_judged(l: &mut Look, share: &Look) {
    (l.j_tokens, l.j_clock, l.j_filled_at) = (share.s_tokens, share.s_clock, share.s_filled_at);
    (l.j_usable, l.j_weight) = (share.s_usable, share.s_weight);
    (l.j_runnable, l.j_line) = (share.s_runnable, share.s_line);
    (l.shares_clock, l.shares_weight) = (share.shares_clock, share.shares_weight);
}

fn quiescent(call: &Call, e: &mut Expected) -> Left {
    leave_queue(&mut e.l);
    let left = if e.l.tenant == 0 {
        if e.l.active != 0 {
            // Its present group says by which share it is judged now.
            copy_share(call, e);
        }
        Left(vec![])
    } else {
        leave_share(call, e);
        Left(TENANT_SHARE.to_vec())
    };
    leave(e);
    left
}

/// The task's state, as the kernel has it: 0 if it is runnable.
fn state_of(call: &Call) -> u32 {
    call.task.map_or(0, |task| {
        // SAFETY: the task's memory lives as long as the machine.
        with(|s| unsafe { *s.tasks[task].fields.state })
    })
}

fn stopping(call: &Call, e: &mut Expected) -> Left {
    e.stop(
        call.was.number != 0,
        state_of(call),
        call.was.answers.functions_wait != 0,
    );
    Left(vec!["l_used", "stats"]).and(&SHARE_OF_JUDGED)
}

fn exit_task(call: &Call, e: &mut Expected) -> Left {
    if (call.was.number != 0 || state_of(call) == DEAD) && e.l.has_inv != 0 {
        e.leave_for_good();
    }
    Left(vec![])
}

fn exec(e: &mut Expected) -> Left {
    if e.l.has_inv != 0 && is_function(&e.l) {
        let now = e.l.now;
        e.cross(EXEC, now);
        if e.l.identity == 0 && !e.begun && e.l.i_function >= 0 {
            e.l.i_function = names::identity(&e.l);
        }
    }
    Left(vec!["cgroup"])
}

fn enter_accept(e: &mut Expected) -> Left {
    if e.l.has_inv != 0 && is_function(&e.l) {
        if e.l.i_threads <= 1 {
            e.l.i_quiet = e.l.now;
            e.end_invocation();
        }
        e.grant_grace();
    }
    Left(vec!["cgroup"])
}

fn leave_accept(call: &Call, e: &mut Expected) -> Left {
    if call.was.number as u32 == 0 && e.l.has_inv != 0 && is_function(&e.l) {
        let at = if e.l.woken_at != 0 {
            e.l.woken_at
        } else {
            e.l.now
        };
        e.cross(ACCEPT, at);
    }
    Left(vec!["cgroup"])
}

fn receive(call: &Call, e: &mut Expected) -> Left {
    let (got, counts) = (call.was.number as i32, call.was.number >> 32 != 0);
    if got > 0 && counts && e.l.has_inv != 0 && is_function(&e.l) && e.l.slept != 0 {
        let at = if e.l.woken_at != 0 {
            e.l.woken_at
        } else {
            e.l.now
        };
        e.cross(RECEIVE, at);
    }
    Left(vec!["cgroup"])
}

fn init_task(call: &Call) {
    let is = &call.is;
    if is.has_context == 0 {
        return;
    }
    call.equal("stopped_on", is.stopped_on, -1);
    call.equal("usual", is.usual, if is.forked != 0 { 4 * MS } else { 0 });
    call.equal("fresh", is.fresh, is.forked);
    call.equal("found_at_load", is.found_at_load, 0);
    let is_forked = call
        .task
        .is_some_and(|task| with(|s| !s.tasks[task].promise.is_outside && s.odd.is_loaded));
    call.equal("forked", is.forked, i64::from(is_forked));
    let threads = is.i_threads;
    if is.unit != UNIT_CGROUP && is.has_inv != 0 && is.inv_is == is.own_is {
        call.equal("threads of its unit", threads, 1);
    }
}

/// The task begins to run.
fn running(call: &Call, e: &mut Expected) -> Left {
    let l = &mut e.l;
    (l.c_has_run, l.c_runs) = (1, 1);
    let fair = l.turn == FAIR;
    l.c_short = i64::from(leaving::has_short_turn(l));
    if l.has_key != 0 {
        (l.has_key, l.vtime) = (0, l.fair_vtime);
    }
    begin_turn(l, fair);
    (l.c_local_short, l.c_called) = (0, 0);
    let wait = if l.queued_at != 0 {
        since(l.now, l.queued_at)
    } else {
        0
    };
    l.queued += wait;
    let starts = matches!(l.turn, FILTER | RANKED) && l.queued_at != 0;
    if l.turn == RANKED {
        kinds::show(l);
    }
    leave_queue(l);
    (l.queued_at, l.stopped_on, l.waits_since) = (0, -1, 0);
    l.charged = l.cpu_time;
    if starts {
        e.stats.add_delay(wait as u64);
        if e.l.turn == FILTER {
            turns::report_overload(e, wait);
        }
    }
    ticks::gives_way(call, e);
    Left(vec!["fair_now", "may_be_held", "exits_at", "has_exit"])
}

/// A turn begins on the CPU: whether FILTER waits for its end, and what it is then.
pub fn begin_turn(l: &mut Look, fair: bool) {
    let outside = fair && l.has_context != 0 && !is_function(l);
    let mut due = fair && l.c_next_due != 0;
    if outside && !due {
        due = may_serve_outside(l);
    }
    l.c_next_due = 0;
    l.c_turn_due = i64::from(due);
    l.c_fair = i64::from(fair && !due);
    if fair && !outside {
        l.c_served_at = l.now;
    }
    if due && l.granted > 0 {
        l.granted = lengths::within_quota(l, 4 * MS);
    }
}

/// Outside work may run before functions, as long as its part of the CPU lasts.
pub fn may_serve_outside(l: &mut Look) -> bool {
    l.c_tokens = filled(l.c_tokens, since(l.now, l.c_filled_at) / 2);
    l.c_filled_at = l.now;
    l.c_tokens > 0
}
