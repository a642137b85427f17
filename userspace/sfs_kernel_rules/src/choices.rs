//! dispatch(): which task a CPU gets. System and prompt turns come first, then FAIR if it is due,
//! outside work within its part of the CPU, FILTER or ranked work, FAIR; and the task that has had
//! the CPU goes on if it comes before all of them.

use crate::accounts::may_serve_outside;
use crate::lengths::{self, debt, due_interval};
use crate::look::Look;
use crate::policy::*;
use crate::queues::{own, Queue, Queues, FAIR as FAIR_QUEUE, FILTER as FILTER_QUEUE, OUTSIDE};
use crate::queues::{PROMPT as PROMPT_QUEUE, RANKED as RANKED_QUEUE, SYSTEM as SYSTEM_QUEUE};
use crate::ticks::{debts_are_known, loader_is_late};
use crate::turns::{self, fair_waiting};
use crate::watch::Call;
use crate::{kinds, leaving, ranks, relief};
use sfs_kernel_model::state::{with, TaskId};

/// What a CPU gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// This task.
    Task(TaskId),
    /// A turn that goes before functions, of this task.
    Due(TaskId),
    /// The task that it has run, for a turn of this kind.
    Keeps(i64),
    /// Nothing.
    Nothing,
}

struct Dispatch<'a> {
    call: &'a Call<'a>,
    l: Look,
    queues: &'a Queues,
    cpu: i64,
    /// The task that it has run wants more, and may have it.
    may_keep: bool,
    /// It wants more.
    wants_more: bool,
}

/// Checks the choice.
pub fn check(call: &Call) {
    let Some(queues) = &call.was.queues else {
        return;
    };
    let mut e = Expected::new(call.was.look, call.was.stats);
    let wants_more = call.task.is_some();
    let has_context = e.l.has_context != 0;
    e.l.now = call.is.now;
    if wants_more && has_context {
        e.charge(call.was.answers.functions_wait != 0);
        e.l.l_used = call.is.l_used;
    }
    let is_parked = e.l.may_be_held != 0 && call.answers.out_of_quota != 0;
    let mut dispatch = Dispatch {
        call,
        l: e.l,
        queues,
        cpu: call.cpu as i64,
        may_keep: wants_more && has_context && !is_parked,
        wants_more: wants_more && !is_parked,
    };
    if dispatch.l.nr_shards > 1 {
        return;
    }
    // Queues change before the choice.
    if loader_is_late(&dispatch.l) || debts_are_known(&dispatch.l) {
        if dispatch.short().is_none() {
            relief::check(call, &dispatch.l);
        }
        return;
    }
    let expected = dispatch.choice();
    dispatch.compare(expected);
}

impl Dispatch<'_> {
    fn first(&self, queue: u64) -> Option<TaskId> {
        self.queues.first(queue)
    }

    fn own(&self, queue: u64) -> u64 {
        own(queue, self.cpu)
    }

    /// A short turn, before all others.
    fn short(&self) -> Option<Choice> {
        let first = self.first(SYSTEM_QUEUE).or(self.first(PROMPT_QUEUE));
        if let Some(task) = first {
            return Some(Choice::Task(task));
        }
        let turn = self.l.turn;
        let is_short = matches!(turn, SYSTEM | PROMPT);
        let keeps = self.may_keep && is_short && self.l.yielded == 0;
        (keeps && turns::next_turn(&self.l) == turn).then_some(Choice::Keeps(turn))
    }

    fn choice(&mut self) -> Choice {
        if let Some(short) = self.short() {
            return short;
        }
        let own_queues = [FILTER_QUEUE, FAIR_QUEUE, OUTSIDE, RANKED_QUEUE];
        let own_waits = own_queues
            .iter()
            .any(|&queue| self.queues.has(self.own(queue)));
        let fair_waits = fair_waiting(&self.l) > 0 || own_waits;
        let ranked_waits = self.l.policy == POLICY_LEARNED && self.l.waits_ranked > 0;
        if !fair_waits && self.l.waits_filter <= 0 && !ranked_waits {
            return self.last();
        }
        self.before_functions(fair_waits)
            .or_else(|| self.of_functions())
            .unwrap_or_else(|| self.of_fair())
    }

    /// FAIR that is due, and outside work.
    fn before_functions(&mut self, fair_waits: bool) -> Option<Choice> {
        if fair_waits && since(self.l.now, self.l.c_looked_at) >= MS {
            let due = self.due_queue().and_then(|queue| self.from(queue));
            if let Some(task) = due {
                return Some(Choice::Due(task));
            }
        }
        let prev_is_outside = self.may_keep && !is_function(&self.l) && self.l.yielded == 0;
        if prev_is_outside && may_serve_outside(&mut self.l) {
            let own_place = lengths::fair_vtime(&self.l, fair_waiting(&self.l));
            let first = self.earliest(&[OUTSIDE, self.own(OUTSIDE)]);
            if first.is_none_or(|first| before(own_place, first.vtime)) {
                return Some(Choice::Keeps(FAIR));
            }
        }
        let outside_waits = self.l.waits_outside > 0 || self.queues.has(self.own(OUTSIDE));
        if fair_waits && may_serve_outside(&mut self.l) && outside_waits {
            let first = self.earliest(&[OUTSIDE, self.own(OUTSIDE)])?.id;
            let others = [first, self.own(OUTSIDE), OUTSIDE];
            let task = others.iter().find_map(|&queue| self.first(queue));
            return task.map(Choice::Due);
        }
        None
    }

    /// FILTER and ranked work.
    fn of_functions(&mut self) -> Option<Choice> {
        let l = &self.l;
        let filter_waits = l.waits_filter > 0 || self.queues.has(self.own(FILTER_QUEUE));
        let in_filter = l.turn == FILTER && has_credit(l) && l.mode == 0 && debt(l) == 0;
        if self.may_keep && in_filter && (l.yielded == 0 || !filter_waits) {
            return Some(Choice::Keeps(FILTER));
        }
        let may_rank = self.may_keep && turns::has_rank(l) && l.yielded == 0 && debt(l) == 0;
        if may_rank && !filter_waits {
            ranks::update(&mut self.l);
            let first = self.earliest(&[RANKED_QUEUE, self.own(RANKED_QUEUE)]);
            if first.is_none_or(|first| !before(first.vtime, self.l.queue_key)) {
                return Some(Choice::Keeps(RANKED));
            }
        }
        let is_learned = self.l.policy == POLICY_LEARNED;
        let ranked = is_learned.then(|| self.ranked()).flatten();
        let filter = self.filter();
        let both = match is_ranked(&self.l) {
            true => filter.or(ranked),
            false => ranked.or(filter),
        };
        both.map(Choice::Task)
    }

    fn ranked(&self) -> Option<TaskId> {
        let queues = [RANKED_QUEUE, self.own(RANKED_QUEUE)];
        let first = self.earliest(&queues)?;
        self.first(first.id)
            .or_else(|| queues.iter().find_map(|&queue| self.first(queue)))
    }

    /// Whoever has waited longest: the first of the shared queue, or a pinned task.
    fn filter(&self) -> Option<TaskId> {
        let (shared, pinned) = (
            self.queues.get(FILTER_QUEUE),
            self.queues.get(self.own(FILTER_QUEUE)),
        );
        let is_first = match (shared, pinned) {
            (Some(shared), Some(pinned)) => pinned.queued_at as u64 <= shared.queued_at as u64,
            (None, Some(_)) => true,
            _ => false,
        };
        let (shared, pinned) = (shared.and_then(|q| q.first), pinned.and_then(|q| q.first));
        match is_first {
            true => pinned.or(shared),
            false => shared.or(pinned),
        }
    }

    /// FAIR, in order of virtual time.
    fn of_fair(&mut self) -> Choice {
        let all = [OUTSIDE, self.own(OUTSIDE), FAIR_QUEUE, self.own(FAIR_QUEUE)];
        let first = self.earliest(&all);
        let l = &self.l;
        if self.may_keep && l.yielded == 0 && (l.turn != RANKED || debt(l) > 0) {
            let own_place = self.next_place();
            if first.is_none_or(|first| before(own_place, first.vtime)) {
                return self.last();
            }
        }
        let found = first.and_then(|first| self.from(first.id));
        found.map_or_else(|| self.last(), Choice::Task)
    }

    fn next_place(&self) -> i64 {
        let place = lengths::fair_vtime(&self.l, fair_waiting(&self.l));
        let line = if self.l.has_share != 0 {
            lengths::line(&self.l)
        } else {
            0
        };
        match line != 0 && before(place, line) {
            true => line,
            false => place,
        }
    }

    /// No other work: the task goes on, whatever it is.
    fn last(&self) -> Choice {
        if !self.wants_more {
            return Choice::Nothing;
        }
        if self.l.has_context == 0 {
            return Choice::Keeps(FAIR);
        }
        match turns::next_turn(&self.l) {
            SYSTEM => Choice::Keeps(FAIR),
            turn => Choice::Keeps(turn),
        }
    }

    /// The queue whose head has the earliest place; among equal ones the first named.
    fn earliest(&self, queues: &[u64]) -> Option<Queue> {
        let mut best: Option<Queue> = None;
        for &id in queues {
            if let Some(queue) = self.queues.get(id) {
                if best.is_none_or(|best| before(queue.vtime, best.vtime)) {
                    best = Some(*queue);
                }
            }
        }
        best
    }

    /// The queue of FAIR whose head has waited longest, if that is too long.
    fn due_queue(&self) -> Option<u64> {
        let all = [FAIR_QUEUE, self.own(FAIR_QUEUE), OUTSIDE, self.own(OUTSIDE)];
        let own_waiting =
            [all[1], all[3]].map(|queue| self.queues.get(queue).map_or(0, |q| q.length));
        let waiting = fair_waiting(&self.l) + own_waiting.iter().sum::<i64>();
        let interval = due_interval(&self.l, waiting);
        if waiting == 0 || since(self.l.now, self.l.c_served_at) < interval {
            return None;
        }
        let wait = |queue: &Queue| match queue.queued_at {
            0 => 100 * MS,
            at => since(self.l.now, at),
        };
        let mut longest: Option<(i64, u64)> = None;
        for queue in all.iter().filter_map(|&id| self.queues.get(id)) {
            if longest.is_none_or(|(most, _)| wait(queue) > most) {
                longest = Some((wait(queue), queue.id));
            }
        }
        longest
            .filter(|(most, _)| *most >= interval)
            .map(|(_, id)| id)
    }

    /// A task of this queue of FAIR, or of another one.
    fn from(&self, queue: u64) -> Option<TaskId> {
        let others = [
            queue,
            self.own(OUTSIDE),
            self.own(FAIR_QUEUE),
            OUTSIDE,
            FAIR_QUEUE,
        ];
        others.iter().find_map(|&queue| self.first(queue))
    }

    fn compare(&self, expected: Choice) {
        let call = self.call;
        let (local, taken) = with(|s| {
            let local = &s.cpus[call.cpu].local;
            (local.front().copied(), local.len())
        });
        if taken > 1 {
            call.finding(&format!("the CPU gets {taken} tasks at once"));
        }
        // The note of an earlier choice stays if that task has not begun.
        let was_due = call.was.look.c_next_due != 0;
        let is_due = call.is.c_next_due != 0 && !(was_due && matches!(expected, Choice::Task(_)));
        let found = match (local, call.task) {
            (Some(task), _) if is_due => Choice::Due(task),
            (Some(task), _) => Choice::Task(task),
            (None, Some(_)) if call.is.granted > 0 => Choice::Keeps(call.is.turn),
            _ => Choice::Nothing,
        };
        if found != expected {
            call.finding(&format!(
                "the CPU gets {found:?}, and should get {expected:?}"
            ));
            return;
        }
        if let Choice::Keeps(turn) = expected {
            self.compare_kept(turn);
        }
    }

    /// The task goes on: for how long.
    fn compare_kept(&self, turn: i64) {
        let (call, mut l) = (self.call, self.l);
        if l.has_context == 0 {
            return;
        }
        let is = &call.is;
        if turn == RANKED {
            ranks::update(&mut l);
            kinds::show(&mut l);
            call.equal("rank", is.r_rank, l.r_rank);
            call.equal("deadline", is.r_deadline, l.r_deadline);
        }
        (l.s_runnable, l.s_line, l.active) = (is.s_runnable, is.s_line, is.active);
        let length = match is.c_turn_due != 0 {
            true => lengths::within_quota(&l, 4 * MS),
            false => turns::length(&l, turn, fair_waiting(&l)),
        };
        call.equal("length of the next turn", is.granted, length);
        call.equal("yielded", is.yielded, 0);
        call.equal("outranked", is.outranked, 0);
        call.equal("may be held", is.may_be_held, 0);
        call.equal(
            "FILTER may preempt it",
            is.c_fair,
            i64::from(turn == FAIR && is.c_turn_due == 0),
        );
        call.equal(
            "short turn",
            is.c_short,
            i64::from(leaving::has_short_turn(&Look { turn, ..l })),
        );
    }
}
