//! What the kernel half answers about a task is what the rules say.

use crate::lengths::{self, due};
use crate::policy::*;
use crate::ranks;
use crate::ticks;
use crate::turns::{self, fair_waiting};
use crate::watch::Call;
use sfs_kernel_model::higher;
use sfs_kernel_model::program::current;
use sfs_kernel_model::state::with;

/// The CPU time that questions are about, ns.
const ASKED_NS: i64 = 1_234_567;

/// Checks all answers.
pub fn check(call: &Call) {
    let (l, a) = (&call.is, &call.answers);
    let Some(task) = call.task.filter(|_| l.has_context != 0) else {
        return;
    };
    let waiting = fair_waiting(l);
    let turn = turns::next_turn(l);
    let equal = |what, is, expected| call.equal(what, is, expected);
    let same = |what, is: i64, expected: bool| call.equal(what, is, i64::from(expected));
    same("function", a.is_function, is_function(l));
    same("system", a.is_system, is_system(l));
    same("credit", a.has_credit, has_credit(l));
    same("rank", a.has_rank, turns::has_rank(l));
    equal("rest of the credit", a.credit_left, turns::credit_left(l));
    equal("debt", a.debt, lengths::debt(l));
    equal(
        "debt in virtual time",
        a.debt_in_vtime,
        if a.debt > 0 {
            lengths::debt_in_vtime(l)
        } else {
            0
        },
    );
    equal("next turn", a.next_turn, turn);
    equal(
        "length of the next turn",
        a.turn_ns,
        turns::length(l, turn, waiting),
    );
    equal("prompt turn", a.prompt_turn, turns::prompt_turn(l));
    equal("turn in FAIR", a.fair_turn, lengths::fair_turn(l, waiting));
    equal("tasks that wait in FAIR", a.fair_waiting, waiting);
    equal("virtual time", a.fair_vtime, turns::place_in_fair(l));
    equal("furthest virtual time", a.ahead, lengths::ahead(l, waiting));
    equal("earliest virtual time", a.saved_up, lengths::saved_up(l));
    equal("weighted time", a.weighted, weighted(l, ASKED_NS));
    equal("weight", a.group_weight, lengths::group_weight(l, l.active));
    equal(
        "interval of due turns",
        a.due_interval,
        lengths::due_interval(l, waiting),
    );
    equal("due turn", a.due_turn, lengths::within_quota(l, 4 * MS));
    equal(
        "wait that is overload",
        a.overload_wait,
        turns::overload_wait(l) as i64,
    );
    equal("expected delay", a.expected_delay, turns::expected_delay(l));
    equal("CPU time due", a.due, due(l));
    equal(
        "size of the tenant's bucket",
        a.bucket,
        lengths::bucket(l, due(l)),
    );
    equal(
        "limit of debt",
        a.longest_debt,
        lengths::longest_debt(due(l)),
    );
    if l.has_share != 0 {
        equal("line", a.line, lengths::line(l));
    }
    let all = if l.shares_weight > 0 {
        ASKED_NS * WEIGHT / l.shares_weight
    } else {
        0
    };
    equal("virtual time of all", a.vtime_of_all, all);
    let daemon = !is_system(l) && may_be_daemon(l);
    same("daemon", a.is_daemon, daemon);
    same("late loader", a.loader_is_late, ticks::loader_is_late(l));
    same("known debts", a.debts_are_known, ticks::debts_are_known(l));
    if l.has_inv != 0 {
        equal("attained CPU time", a.attained, ranks::attained(l));
    }
    equal("longest slice", a.longest_slice, ranks::longest_slice(l));
    equal("farthest key", a.farthest_key, ranks::farthest_key(l));
    same("long wait", a.waits_long, turns::waits_long(l));
    same("short turn", a.is_short, matches!(l.turn, SYSTEM | PROMPT));
    same("prompt", a.is_prompt, l.turn_used < l.prompt);
    let is_over = l.turn == RANKED && (l.has_inv == 0 || l.i_used >= l.slice_end);
    same("end of the ranked slice", a.ranked_over, is_over);
    if l.has_inv != 0 {
        equal("identity", a.identity, crate::names::identity(l));
    }
    let pinned = with(|s| {
        let t = &s.tasks[task];
        let is_current = current(s, s.here) == t.fields.task;
        let only = (0..s.cpus.len()).find(|&cpu| s.may_run(task, cpu));
        // The program is a section without migration itself.
        match l.sections > i64::from(is_current) {
            true => t.cpu as i64,
            // SAFETY: the task's memory lives as long as the machine.
            false if unsafe { *t.fields.nr_cpus } == 1 => only.map_or(-1, |cpu| cpu as i64),
            false => -1,
        }
    });
    if !call.is_nested {
        equal("only CPU", a.pinned, pinned);
    }
    same("FILTER's work", a.filter_waiting, ticks::filter_waits(l));
    same("FILTER's head", a.filter_head, ticks::filter_head_waits(l));
    same(
        "work of functions",
        a.functions_wait,
        ticks::functions_wait(l),
    );
    same(
        "short turns that wait",
        a.short_waits,
        ticks::short_waits(call.cpu),
    );
    same("ranked head", a.ranked_head, ticks::ranked_head_waits(l));
    same(
        "due FAIR work",
        i64::from(a.due_queue != 0),
        ticks::fair_is_due(l),
    );
    let taken = with(|s| higher::has(s, call.cpu));
    // In the middle of a switch the last task is still the current one.
    if with(|s| s.cpus[call.cpu].switches_from.is_none()) {
        same("real-time task", a.is_taken, taken || l.c_taken != 0);
    }
}
