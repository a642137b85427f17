//! The rules of the policy: how what is kept of a task changes by what happens to it. They are
//! those of ARCHITECTURE.md and docs/policy.md, stated on a copy of what was kept before.

use crate::leaving::charged_turn;
use crate::look::Look;
use crate::overtaking;
use crate::shares;
use crate::stats::{counter, Stats};
use crate::{ends, lengths};
use sfs_kernel_model::loader_ffi::Completion;
use sfs_kernel_model::tasks::DEAD;

pub const MS: i64 = 1_000_000;
/// SCX_ENQ_WAKEUP.
pub const WAKEUP: u64 = 1;

/// Kinds of turns.
pub const FAIR: i64 = 0;
pub const FILTER: i64 = 1;
pub const RANKED: i64 = 2;
pub const SYSTEM: i64 = 3;
pub const PROMPT: i64 = 4;

/// States of credit: none yet, credit, demoted, grace, grace used up, ended.
pub const NONE: i64 = 0;
pub const CREDIT: i64 = 1;
pub const DEMOTED: i64 = 2;
pub const GRACE: i64 = 3;
pub const SPENT: i64 = 4;
pub const ENDED: i64 = 5;

/// Policies.
pub const POLICY_LEARNED: i64 = 1;
pub const POLICY_FAIR: i64 = 2;

/// Boundaries.
pub const FORK: i64 = 1;
pub const EXEC: i64 = 2;
pub const ACCEPT: i64 = 4;
pub const RECEIVE: i64 = 8;
pub const HINT: i64 = 16;
pub const IDLE: i64 = 32;

/// Units: process, sandbox, thread.
pub const UNIT_PROCESS: i64 = 0;
pub const UNIT_CGROUP: i64 = 1;

/// The weight of a task with a nice value of 0, outside of groups.
pub const WEIGHT: i64 = 1 << 20;
/// A kernel thread.
const KERNEL_THREAD: i64 = 0x20_0000;
/// A turn in FAIR; also the CPU time of a first turn there.
pub const FAIR_TURN: i64 = 20 * MS;
/// The rank of a CPU that runs no ranked work.
pub const NO_RANK: i64 = 0xffff;
/// Size of a bucket of prompt CPU time.
pub const PROMPT_BURST: i64 = 20 * MS;

/// What is expected after a callback.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Of the task.
    pub l: Look,
    /// Of the counters.
    pub stats: Stats,
    /// An invocation has ended: what the loader is told, and whether it was demoted.
    pub ended: Option<(Completion, bool)>,
    /// The invocation that has begun is judged by the arrivals of its tenant.
    pub begun: bool,
}

/// Kernel threads and the loader.
pub fn is_system(l: &Look) -> bool {
    l.flags & KERNEL_THREAD != 0 || l.tgid == l.loader_tgid
}

/// In a sandbox or, without any, forked since load.
pub fn is_function(l: &Look) -> bool {
    !is_system(l)
        && match l.only_sandboxes {
            0 => l.forked != 0,
            _ => l.sandbox != 0,
        }
}

pub fn has_credit(l: &Look) -> bool {
    l.has_inv != 0 && matches!(l.i_state, CREDIT | GRACE)
}

/// Ranks are in force.
pub fn is_ranked(l: &Look) -> bool {
    l.policy == POLICY_LEARNED && l.default_table < 512
}

/// Virtual time for CPU time, by weight.
pub fn weighted(l: &Look, ns: i64) -> i64 {
    let weight = if l.fair_weight == 0 {
        WEIGHT
    } else {
        l.fair_weight
    };
    (ns as u64)
        .wrapping_mul(WEIGHT as u64)
        .wrapping_div(weight as u64) as i64
}

/// The time from one moment to a later one; 0 if it is not later.
pub fn since(now: i64, then: i64) -> i64 {
    now.wrapping_sub(then).max(0)
}

/// `a` comes before `b` on a clock that wraps.
pub fn before(a: i64, b: i64) -> bool {
    a.wrapping_sub(b) < 0
}

impl Expected {
    pub fn new(l: Look, stats: Stats) -> Self {
        Self {
            l,
            stats,
            ended: None,
            begun: false,
        }
    }

    pub fn count(&mut self, counter: usize) {
        self.stats.counters[counter] += 1;
    }

    /// The CPU time since the last charge is charged. `functions_wait`: for the CPU.
    pub fn charge(&mut self, functions_wait: bool) {
        let l = &mut self.l;
        let delta = since(l.cpu_time, l.charged);
        l.charged = l.cpu_time;
        if l.has_inv != 0 && l.seen_seq != l.i_seq {
            if l.seen_seq != 0 {
                l.vtime = l.fair_now;
            }
            l.seen_seq = l.i_seq;
            (l.filter_used, l.fair_used, l.ranked_used) = (0, 0, 0);
        }
        l.turn_used += delta;
        let turn = charged_turn(l);
        match turn {
            FAIR => self.charge_fair(delta, functions_wait),
            FILTER => l.filter_used += delta,
            RANKED => overtaking::charge(l, delta),
            PROMPT => {
                l.tokens = (l.tokens - delta).max(0);
                l.c_tokens = (l.c_tokens - delta).max(-8 * MS);
            }
            _ => {}
        }
        let l = &mut self.l;
        if l.is_present != 0 {
            l.sharing_clock += delta / l.present.max(1);
        }
        if l.tenant != 0 && l.has_share != 0 && delta > 0 {
            let is_early = matches!(turn, FILTER | RANKED);
            // Of the groups now.
            let weight = lengths::tenant_weight(l.tenant & i64::MAX);
            shares::charge(l, delta, is_early, weight);
        }
        self.charge_invocation(delta);
        if !has_credit(&self.l) {
            self.leave_demand();
        }
    }

    fn charge_fair(&mut self, delta: i64, functions_wait: bool) {
        let l = &mut self.l;
        l.vtime = l.vtime.wrapping_add(weighted(l, delta));
        if l.tenant != 0 {
            l.booked -= delta;
        }
        if l.filter_used != 0 {
            l.fair_used += delta;
            if l.fair_used >= FAIR_TURN {
                l.vtime = l.vtime.wrapping_add(weighted(l, l.filter_used));
                (l.filter_used, l.fair_used) = (0, 0);
            }
        }
        if is_function(l) {
            return;
        }
        // Work outside of functions pays for the CPU while functions wait.
        l.c_outside += delta;
        if l.c_outside >= MS / 10 {
            if functions_wait {
                l.c_tokens = (l.c_tokens - l.c_outside).max(-4 * MS);
            }
            l.c_outside = 0;
        }
    }

    fn charge_invocation(&mut self, delta: i64) {
        let l = &mut self.l;
        if l.has_inv == 0 || l.i_state == NONE {
            return;
        }
        l.i_used += delta;
        if l.i_used < l.i_credit {
            return;
        }
        if l.i_state == GRACE {
            l.i_state = SPENT;
        } else if l.i_state == CREDIT {
            l.i_state = DEMOTED;
            if l.i_open != 0 {
                let (counted, credit) = (l.i_counted != 0, l.i_credit);
                self.count(counter::DEMOTIONS);
                if counted {
                    self.sample(credit);
                }
            }
        }
    }

    /// A sample of the CPU time that FILTER work uses: a 32nd of the average.
    fn sample(&mut self, ns: i64) {
        let avg = self.l.credit_avg;
        self.l.credit_avg = match avg {
            0 => ns,
            _ => avg + ((ns - avg) >> 5),
        };
    }

    pub fn leave_demand(&mut self) {
        if self.l.in_demand != 0 {
            self.l.in_demand = 0;
            self.l.demand -= 1;
        }
    }

    /// The invocation in progress has ended.
    pub fn end_invocation(&mut self) {
        if self.l.i_open == 0 {
            return;
        }
        let (used, in_credit) = (self.l.i_used, self.l.i_state == CREDIT);
        self.l.i_open = 0;
        self.l.i_ended = used;
        self.count(counter::COMPLETIONS);
        if in_credit {
            self.count(counter::COMPLETIONS_IN_CREDIT);
            if self.l.i_counted != 0 {
                self.sample(used);
            }
        }
        self.ended = Some((ends::record(&self.l), !in_credit));
        ends::count(&mut self.l);
    }

    /// A thread of the unit is gone.
    pub fn leave_invocation(&mut self) {
        self.l.i_threads -= 1;
        if self.l.i_threads != 0 || self.l.i_state == NONE {
            return;
        }
        self.l.i_quiet = self.l.now;
        self.end_invocation();
        self.l.i_state = ENDED;
    }

    /// The task has ended.
    pub fn leave_for_good(&mut self) {
        if self.l.has_left == 0 {
            self.l.has_left = 1;
            self.leave_invocation();
        }
    }

    /// A boundary of this kind.
    pub fn cross(&mut self, kind: i64, arrived_at: i64) {
        let l = &mut self.l;
        if l.kinds & kind == 0 {
            return;
        }
        let waited = l.woken_at != 0 && arrived_at == l.woken_at;
        l.woken_at = 0;
        l.slept = 0;
        let is_near = l.i_open != 0 && l.i_used < 2 * MS;
        if is_near && (kind == RECEIVE || l.i_kinds & kind == 0) {
            l.i_kinds |= kind;
            return self.count(counter::MERGED);
        }
        self.end_invocation();
        let l = &mut self.l;
        l.i_arrived = arrived_at;
        l.i_credit = l.slice_ns;
        (l.i_used, l.i_service, l.i_slept_at) = (0, 0, 0);
        (l.i_burst, l.i_quiet, l.i_graced) = (0, 0, 0);
        l.i_born = l.sharing_clock;
        l.i_kinds = kind;
        l.i_seq += 1;
        l.i_state = CREDIT;
        l.i_open = 1;
        l.i_counted = 0;
        if !waited {
            l.queued = 0;
        }
        self.count(counter::ARRIVALS);
        self.count(match kind {
            FORK => counter::BEGUN_BY_FORK,
            EXEC => counter::BEGUN_BY_EXEC,
            ACCEPT => counter::BEGUN_BY_ACCEPT,
            RECEIVE => counter::BEGUN_BY_RECEIVE,
            HINT => counter::BEGUN_BY_HINT,
            _ => counter::BEGUN_BY_IDLE,
        });
        self.begun = true;
        if kind != FORK || self.l.forked != 0 {
            self.judge();
        }
    }

    /// Beside others, a tenant gets at most half of each window of arrivals, and none in debt.
    fn judge(&mut self) {
        let l = &mut self.l;
        let window = l.arrivals / l.window.max(1);
        if l.last_tenant != l.j_tenant {
            if l.last_tenant != -1 {
                l.others_began_at = l.now;
            }
            l.last_tenant = l.j_tenant;
        }
        let is_alone = since(l.now, l.others_began_at) > 1_000 * MS;
        let mut counts = true;
        if l.j_has != 0 {
            l.j_granted += 1;
            if !is_alone {
                if l.j_window != window {
                    (l.j_window, l.j_arrivals) = (window, 0);
                }
                counts = l.j_tokens >= 0;
                if counts {
                    counts = l.j_arrivals < (l.window + 1) / 2;
                    l.j_arrivals += 1;
                }
            }
        }
        if counts {
            l.i_counted = 1;
            l.arrivals += 1;
        }
    }

    /// Grace: once for each invocation, 10 ms to reach the next boundary.
    pub fn grant_grace(&mut self) {
        let l = &mut self.l;
        if l.i_graced != 0 {
            return;
        }
        l.i_graced = 1;
        let enough = l.i_used + 10 * MS;
        if l.i_state != CREDIT {
            l.i_credit = enough;
            l.i_state = GRACE;
        } else if l.i_open == 0 {
            l.i_credit = l.i_credit.max(enough);
        }
    }

    /// The task becomes runnable, or had a tick.
    pub fn note_runnable(&mut self, wakeup: bool) {
        let fresh = std::mem::take(&mut self.l.fresh) != 0;
        if self.l.has_inv == 0 || !is_function(&self.l) {
            return;
        }
        let now = self.l.now;
        if fresh && self.starts_unit() {
            self.cross(FORK, now);
        }
        if !wakeup {
            return;
        }
        let l = &mut self.l;
        l.slept = 1;
        if l.found_at_load != 0 {
            l.found_at_load = 0;
            if l.i_state == NONE {
                (l.i_credit, l.i_state) = (l.slice_ns, CREDIT);
            }
        }
        if l.i_open == 0 {
            (l.woken_at, l.queued) = (now, 0);
        }
        let was_asleep = l.i_slept_at != 0 && l.i_used == l.i_slept;
        if l.policy == POLICY_LEARNED
            && l.i_open != 0
            && l.i_burst == 0
            && was_asleep
            && since(now, l.i_slept_at) >= MS
        {
            l.i_burst = l.i_used.max(1);
        }
        if l.kinds & IDLE != 0 && l.i_slept_at != 0 && since(now, l.i_slept_at) >= l.idle_ns {
            l.i_slept_at = 0;
            self.cross(IDLE, now);
        }
        if self.l.kinds & RECEIVE != 0 && !has_credit(&self.l) {
            self.grant_grace();
        }
    }

    fn starts_unit(&self) -> bool {
        match self.l.unit {
            UNIT_PROCESS => self.l.inv_is == self.l.own_is,
            UNIT_CGROUP => matches!(self.l.i_state, NONE | ENDED),
            _ => true,
        }
    }

    /// The task goes to sleep.
    pub fn note_sleep(&mut self) {
        let l = &mut self.l;
        let endless = l.kinds & (IDLE | RECEIVE | HINT) != 0;
        let first = l.policy == POLICY_LEARNED && l.i_open != 0 && l.i_burst == 0;
        if !(endless || first) || !is_function(l) {
            return;
        }
        if endless {
            l.i_quiet = l.now;
        }
        if first || l.kinds & IDLE != 0 {
            (l.i_slept_at, l.i_slept) = (l.now, l.i_used);
        }
    }

    /// The task leaves its CPU.
    pub fn stop(&mut self, is_runnable: bool, state: u32, functions_wait: bool) {
        let l = &mut self.l;
        (l.c_fair, l.c_runs) = (0, 0);
        if l.turn == RANKED {
            l.outranked |= i64::from(l.r_rank == NO_RANK);
            (l.r_rank, l.r_deadline) = (NO_RANK, 0);
        }
        self.charge(functions_wait);
        let l = &mut self.l;
        overtaking::stop(l, is_runnable);
        if l.turn == FAIR && is_function(l) {
            l.c_served_at = l.now;
        }
        l.c_short = 0;
        l.stopped_on = if is_runnable { l.cpu } else { -1 };
        if !is_runnable || l.cpu_time >= l.served_at {
            l.starved_since = 0;
        }
        if l.exits_at != 0 && (state != 0 || since(l.now, l.exits_at) > MS) {
            l.may_be_held = 0;
        }
        if is_runnable {
            return;
        }
        (l.asleep_at, l.asleep_clock) = (l.now, l.sharing_clock);
        l.usual += (l.turn_used - l.usual) >> 2;
        if l.has_inv == 0 {
            return;
        }
        match state == DEAD {
            true => self.leave_for_good(),
            false => self.note_sleep(),
        }
    }

    /// The task wakes up, or is new: it may get a prompt turn. `borrows`: beyond the CPU's tokens.
    pub fn begin_activity(&mut self, borrows: bool) {
        let l = &mut self.l;
        (l.turn_used, l.prompt, l.leaves) = (0, 0, 0);
        let function = is_function(l);
        if is_system(l) || !may_be_daemon(l) {
            return;
        }
        l.tokens = filled(l.tokens, since(l.now, l.filled_at) / 4);
        l.c_tokens = filled(l.c_tokens, since(l.now, l.c_filled_at) / 2);
        (l.filled_at, l.c_filled_at) = (l.now, l.now);
        let one_turn = function && l.mostly_sleeps == 0;
        let own = l.tokens.min(if one_turn { 4 * MS } else { PROMPT_BURST });
        let lent = if borrows && !function { 4 * MS } else { 0 };
        let most = if l.c_tokens < own {
            own.min(l.c_tokens + lent)
        } else {
            own
        };
        if most >= MS / 10 {
            l.prompt = most;
        }
    }
}

/// Not a function or, if nothing tells, one that runs for a short time or mostly sleeps.
pub fn may_be_daemon(l: &Look) -> bool {
    !is_function(l) || (l.only_sandboxes == 0 && (l.usual <= 2 * MS || l.mostly_sleeps != 0))
}

/// A bucket of prompt CPU time with so much more.
pub fn filled(tokens: i64, more: i64) -> i64 {
    (tokens + more.min(2 * PROMPT_BURST)).min(PROMPT_BURST)
}
