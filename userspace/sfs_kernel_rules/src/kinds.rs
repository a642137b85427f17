//! enqueue(): which kind of turn a task gets, how long it is, in which queue it waits, and which CPU
//! is told.

use crate::accounts::{leave, leave_queue, Left, JUDGED, SHARES, SHARE_OF_JUDGED};
use crate::kicks::{self, Kick};
use crate::leaving;
use crate::lengths::{self, book, fair_turn, group_weight, within_quota};
use crate::look::{look, Look, OfCpu};
use crate::overtaking;
use crate::policy::{self, *};
use crate::queues::{self, own, LOCAL};
use crate::ranks;
use crate::shards;
use crate::ticks::{outside_is_due, short_waits};
use crate::turns::{credit_left, fair_waiting, length, next_turn, prompt_turn, waits_long};
use crate::watch::Call;
use sfs_kernel_model::groups::ROOT;
use sfs_kernel_model::program::current;
use sfs_kernel_model::state::{with, CpuId, TaskId};

/// Flags of enqueue(): at the front, after a real-time task, the last task of its CPU.
const HEAD: u64 = 1 << 4;
const REENQ: u64 = 1 << 40;
const LAST: u64 = 1 << 41;
/// Of the insertion: the queue is ordered by virtual time.
const BY_VTIME: u64 = 1 << 57;
/// SCX_WAKE_SYNC.
const SYNC: u64 = 16;
/// Queues of tasks that wait for quota.
const PARKED: u64 = 1 << 60;
/// Work that has claimed a CPU goes so far ahead.
pub const CLAIMS: i64 = 1 << 50;

/// The group that counts a task, and its weight there.
pub fn counted_in(task: Option<TaskId>, weight: i64) -> i64 {
    let group = with(|s| {
        let at = s.groups.members[task?].tg;
        let mut up = s.groups.upwards(at);
        up.find(|&at| s.groups.is_known(at) && s.groups.all[at].level <= 32)
    });
    (group.unwrap_or(ROOT) as i64 + 1) << 15 | (weight & 0x7fff)
}

/// The waker is about to sleep, and leaves the task its CPU: not a function, nor the system.
pub fn is_handed_over(call: &Call) -> bool {
    let here = with(|s| s.here);
    let may = call
        .task
        .is_some_and(|task| with(|s| s.may_run(task, here)));
    if call.was.number & SYNC == 0 || !may {
        return false;
    }
    let waker = look(with(|s| current(s, here)), here);
    waker.has_context != 0 && !is_system(&waker) && !is_function(&waker)
}

/// What enqueue() is to do.
#[derive(Debug, Default)]
struct Plan {
    /// The queue, and flags beside those that it was called with.
    queue: u64,
    flags: u64,
    /// Whom it wakes up: an idle CPU, or a busy one.
    kick: Kick,
}

/// What enqueue() leaves in words; `check` has where it puts the task.
pub fn expect(call: &Call, e: &mut Expected) -> Left {
    plan(call, e);
    let left = Left(vec![
        "has_exit",
        "c_short",
        "c_preempted_until",
        "c_local_short",
        "c_first",
        "first_on",
        "c_tokens",
        "c_filled_at",
        "s_denied",
        "stats",
        "c_fair",
        "c_own",
    ]);
    match call.is.tenant == call.was.look.tenant {
        true => left.and(&SHARE_OF_JUDGED),
        false => left.and(&SHARES).and(&JUDGED),
    }
}

/// Where it puts the task, and whom it tells.
pub fn check(call: &Call) {
    let was = &call.was.look;
    if was.sandbox != call.is.sandbox || was.inv_is != call.is.inv_is {
        return;
    }
    let mut e = Expected::new(*was, call.was.stats);
    e.l.now = call.is.now;
    let plan = plan(call, &mut e);
    let Some(task) = call.task else { return };
    let Some((queue, flags)) = with(|s| s.tasks[task].direct) else {
        return;
    };
    let is_short = matches!(call.is.turn, SYSTEM | PROMPT);
    if queue != plan.queue {
        call.finding(&format!(
            "it waits in {queue:#x}, and should in {:#x}",
            plan.queue
        ));
    }
    let (given, mask) = (call.was.number, HEAD | BY_VTIME);
    if (flags & mask) != (plan.flags | given) & mask && !(is_short && queue == LOCAL) {
        call.finding(&format!(
            "it is inserted with flags {flags:#x}, and should be with {:#x}",
            plan.flags | given
        ));
    }
    let parked = plan.queue & PARKED == PARKED;
    kicks::check_all(call, plan.kick, parked, task);
}

fn plan(call: &Call, e: &mut Expected) -> Plan {
    let (flags, pinned) = (call.was.number, call.was.answers.pinned);
    leave_queue(&mut e.l);
    if e.l.has_key != 0 {
        (e.l.has_key, e.l.vtime) = (0, e.l.fair_vtime);
    }
    let turn = next_turn(&e.l);
    let group = match e.l.may_be_held != 0 {
        true => call.was.answers.out_of_quota,
        false => 0,
    };
    let plan = if group != 0 {
        wait_for_quota(e, group)
    } else if gets_idle_cpu(call) {
        e.l.queued_at = e.l.now;
        take_turn(call, e, turn);
        e.l.waits_since = 0;
        Plan {
            queue: LOCAL,
            ..Plan::default()
        }
    } else if is_interrupted(call, e, turn, flags) && resumes(call, e, pinned) {
        e.l.queued_at = 0;
        take_turn(call, e, turn);
        if turn == RANKED {
            show(&mut e.l);
        }
        e.l.waits_since = 0;
        resume(e, pinned)
    } else {
        let is_interrupted = is_interrupted(call, e, turn, flags);
        wait(call, e, turn, is_interrupted, pinned)
    };
    if group == 0 {
        e.l.may_be_held = 0;
        let keep = |word: &mut i64| *word &= i64::MAX;
        keep(&mut e.l.in_demand);
        keep(&mut e.l.is_present);
        keep(&mut e.l.tenant);
        keep(&mut e.l.active);
    }
    let l = &mut e.l;
    (l.chose_idle, l.yielded, l.outranked, l.handed_over) = (0, 0, 0, 0);
    plan
}

fn wait_for_quota(e: &mut Expected, group: i64) -> Plan {
    if e.l.has_share != 0 && e.l.booked != 0 {
        lengths::settle(&mut e.l);
    }
    leave(e);
    let l = &mut e.l;
    (l.queued_at, l.granted) = (l.now, MS);
    if l.waits_since == 0 {
        l.waits_since = l.now;
    }
    l.starved_since = 0;
    Plan {
        queue: PARKED | group as u64,
        ..Plan::default()
    }
}

/// The CPU that select_cpu() has chosen is still free.
fn gets_idle_cpu(call: &Call) -> bool {
    let (l, cpu) = (&call.was.look, call.cpu);
    let is_free = with(|s| s.cpus[cpu].local.is_empty());
    l.chose_idle != 0
        && l.c_runs == 0
        && l.c_dispatching == 0
        && is_free
        && call.was.answers.is_taken == 0
}

/// The task was preempted in the middle of its turn.
fn is_interrupted(call: &Call, e: &Expected, turn: i64, flags: u64) -> bool {
    let l = &e.l;
    if turn == FAIR
        || turn != l.turn
        || l.yielded != 0
        || l.outranked != 0
        || l.waits_since != 0
        || flags & (policy::WAKEUP | LAST | REENQ) != 0
        || l.stopped_on != call.cpu as i64
    {
        return false;
    }
    let is_over = l.has_inv == 0 || l.i_used >= l.slice_end;
    turn != RANKED || !(is_over || call.was.answers.claimer != 0)
}

/// It goes on as soon as whoever preempted it gives the CPU back.
fn resumes(call: &Call, e: &mut Expected, pinned: i64) -> bool {
    let l = &mut e.l;
    if matches!(l.turn, SYSTEM | PROMPT) {
        return true;
    }
    l.c_next_due == 0
        && !short_waits(call.cpu)
        && !outside_is_due(l)
        && (pinned >= 0 || (l.c_first == 0 && call.was.answers.elsewhere == 0))
}

fn resume(e: &mut Expected, pinned: i64) -> Plan {
    let l = &mut e.l;
    let queue = match l.turn {
        SYSTEM => queues::SYSTEM,
        PROMPT => queues::PROMPT,
        _ => {
            return Plan {
                queue: LOCAL,
                ..Plan::default()
            }
        }
    };
    if pinned < 0 || l.c_first != 0 {
        waits_in(l, queue);
        return Plan {
            queue,
            flags: HEAD,
            kick: Kick::Idle,
        };
    }
    Plan {
        queue: LOCAL,
        flags: HEAD,
        kick: Kick::Nobody,
    }
}

fn waits_in(l: &mut Look, queue: u64) {
    l.queue = queues::number(l, queue);
    if let Some(count) = queues::counted(l, l.queue) {
        *count += 1;
    }
}

/// The task takes its turn without a queue.
fn take_turn(call: &Call, e: &mut Expected, turn: i64) {
    let l = &mut e.l;
    l.turn = turn;
    if turn == FAIR {
        let waiting = fair_waiting(l);
        l.granted = fair_turn(l, waiting);
        join_group(call, l);
        let weight = group_weight(l, l.active);
        return book(l, weight, l.granted, waiting);
    }
    fair_leave(l);
    if turn == RANKED && l.has_inv != 0 {
        ranks::update(l);
    }
    l.granted = length(l, turn, 0);
}

/// It competes in its group.
fn join_group(call: &Call, l: &mut Look) {
    if l.active == 0 {
        l.active = counted_in(call.task, l.weight);
    }
}

/// Tasks that are not functions compete in their group only while they are in FAIR.
fn fair_leave(l: &mut Look) {
    if !is_function(l) {
        l.active = 0;
    }
}

fn wait(call: &Call, e: &mut Expected, turn: i64, is_interrupted: bool, pinned: i64) -> Plan {
    let flags = call.was.number;
    let l = &mut e.l;
    let leaves = leaving::must_leave(l, turn, flags & policy::WAKEUP != 0, flags & LAST != 0);
    let mut plan = match turn {
        _ if leaves => {
            leaving::begin(l, turn);
            waits_in(l, queues::PROMPT);
            Plan {
                queue: queues::PROMPT,
                kick: match flags & (policy::WAKEUP | REENQ) {
                    0 => Kick::Nobody,
                    _ => Kick::Idle,
                },
                ..Plan::default()
            }
        }
        SYSTEM => {
            (l.turn, l.queued_at, l.granted) = (SYSTEM, 0, 4 * MS);
            short_turn(l, queues::SYSTEM, pinned, l.c_dispatching == 0)
        }
        PROMPT => {
            l.granted = prompt_turn(l);
            (l.turn, l.queued_at) = (PROMPT, 0);
            fair_leave(l);
            let is_free = l.c_short == 0 && l.c_first == 0 && !short_waits(pinned.max(0) as CpuId);
            short_turn(l, queues::PROMPT, pinned, is_free && l.c_dispatching == 0)
        }
        RANKED => ranked(call, l, pinned),
        FILTER => {
            let queue = match pinned {
                -1 if l.nr_shards > 1 => {
                    let chosen = with(|s| s.tasks[call.task.unwrap_or(0)].direct);
                    shards::choice(l, chosen.map_or(0, |d| d.0))
                }
                -1 => queues::FILTER,
                cpu => own(queues::FILTER, cpu),
            };
            (l.turn, l.queued_at) = (FILTER, l.now);
            l.granted = within_quota(l, credit_left(l));
            let displaced = flags & REENQ != 0 && l.stopped_on >= 0;
            let is_first = is_interrupted || displaced || waits_long(l);
            waits_in(l, queue);
            Plan {
                queue,
                flags: if is_first { HEAD } else { 0 },
                kick: Kick::IdleOrFair,
            }
        }
        _ => fair(call, l, pinned),
    };
    if matches!(turn, FAIR) && flags & policy::WAKEUP != 0 && !leaves {
        plan.kick = Kick::IdleOrOwn;
    }
    let l = &mut e.l;
    if l.waits_since == 0 {
        l.waits_since = l.now;
    }
    if l.starved_since == 0 {
        l.starved_since = l.now;
        l.served_at = l.cpu_time + MS;
    }
    plan
}

/// A short turn: at the front of its CPU if it is pinned and no other short turn is there, or where
/// all CPUs look first.
fn short_turn(l: &mut Look, queue: u64, pinned: i64, is_free: bool) -> Plan {
    if pinned >= 0 && is_free {
        return Plan {
            queue: LOCAL,
            flags: 0,
            kick: Kick::Nobody,
        };
    }
    waits_in(l, queue);
    let kick = if pinned >= 0 {
        Kick::IdlePinned
    } else {
        Kick::Short
    };
    Plan {
        queue,
        flags: 0,
        kick,
    }
}

fn fair(call: &Call, l: &mut Look, pinned: i64) -> Plan {
    let shared = if is_function(l) {
        queues::FAIR
    } else {
        queues::OUTSIDE
    };
    let queue = if pinned < 0 {
        shared
    } else {
        own(shared, pinned)
    };
    let waiting = fair_waiting(l);
    (l.turn, l.queued_at) = (FAIR, l.now);
    l.granted = fair_turn(l, waiting);
    join_group(call, l);
    let weight = group_weight(l, l.active);
    book(l, weight, l.granted, waiting);
    waits_in(l, queue);
    Plan {
        queue,
        flags: BY_VTIME,
        kick: Kick::Idle,
    }
}

/// Its CPU runs the task or resumes it next, and an arrival may claim that CPU. A turn that was taken
/// from overdue work counts as overdue.
pub fn show(l: &mut Look) {
    (l.r_rank, l.r_deadline) = (l.rank, if l.taken == 0 { l.deadline } else { 0 });
}

/// By deadline. A task that arrives may preempt FAIR work, or the worst rank if that is worse than
/// its own and not overdue, or, within a budget, overdue.
fn ranked(call: &Call, l: &mut Look, pinned: i64) -> Plan {
    let queue = if pinned < 0 {
        queues::RANKED
    } else {
        own(queues::RANKED, pinned)
    };
    let displaced = call.was.number & REENQ != 0 && l.stopped_on >= 0;
    let arrives = call.was.number & policy::WAKEUP != 0 || l.stopped_on < 0;
    if arrives {
        overtaking::end(l);
    }
    ranks::update(l);
    let claimed = if arrives {
        claim(call, l, pinned)
    } else {
        None
    };
    if claimed.is_some_and(|(cpu, is_fair)| cpu == call.cpu && !is_fair) {
        l.r_rank = NO_RANK;
    }
    if claimed.is_some() {
        overtaking::begin(l);
    }
    l.granted = within_quota(l, l.slice);
    (l.turn, l.queued_at) = (RANKED, l.now);
    if displaced {
        show(l);
    }
    (l.has_key, l.fair_vtime, l.vtime) = (1, l.vtime, l.queue_key);
    waits_in(l, queue);
    Plan {
        queue,
        flags: BY_VTIME,
        kick: claimed.map_or(Kick::Idle, |(cpu, is_fair)| Kick::Claimed(cpu, is_fair)),
    }
}

/// The CPU that the task may preempt, and whether it runs FAIR work.
fn claim(call: &Call, l: &mut Look, pinned: i64) -> Option<(CpuId, bool)> {
    let task = call.task?;
    let may = |cpu: CpuId| match pinned {
        -1 => with(|s| s.may_run(task, cpu)),
        only => only == cpu as i64,
    };
    let cpus = || {
        call.was
            .cpus
            .iter()
            .enumerate()
            .filter(|(cpu, _)| may(*cpu))
    };
    let kicked = call.kicks.first().map(|kick| kick.0);
    let fair: Vec<CpuId> = cpus()
        .filter(|(_, of)| of.is_fair != 0)
        .map(|(cpu, _)| cpu)
        .collect();
    if !fair.is_empty() {
        // Any of them.
        let chosen = kicked.filter(|cpu| fair.contains(cpu));
        return Some((chosen.unwrap_or(fair[0]), true));
    }
    let worst = |overdue: bool| {
        let worse = |of: &OfCpu| {
            of.rank != NO_RANK
                && of.rank > l.rank
                && before(l.sharing_clock, of.deadline) != overdue
        };
        let candidates = || cpus().filter(|(_, of)| worse(of));
        let rank = candidates().map(|(_, of)| of.rank).max()?;
        candidates()
            .find(|(_, of)| of.rank == rank)
            .map(|(cpu, _)| cpu)
    };
    if let Some(cpu) = worst(false) {
        return Some((cpu, false));
    }
    let cpu = worst(true)?;
    overtaking::take(l).then_some((cpu, false))
}
