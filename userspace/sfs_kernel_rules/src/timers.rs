//! The kernel half's timers: each fires again as it should, and the guard does its work.

use crate::look::{agrees, look, model_is_guard};
use crate::policy::{before, since, MS};
use crate::queues::{own, FAIR, OUTSIDE, RANKED};
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, Event, State, TaskId};
use std::cmp::Reverse;

/// The guard looks once a second, at tasks that have waited for 5 s.
const GUARD_NS: u64 = 1_000_000_000;
const LONG: i64 = 5_000 * MS;
/// The timer of quotas fires again after so long, ns, at least and at most; a ms for each 128 groups.
const RELEASE_NS: (u64, u64) = (1_000_000, 5_000_000);

/// A timer has fired. Not while the state is held.
pub fn fired(timer: usize) {
    if race::is_on() || !agrees() || with(|s| s.faults.late_timers) {
        return;
    }
    // SAFETY: takes a plain value.
    let is_guard = with(|s| unsafe { model_is_guard(s.timers[&timer].map) });
    with(|s| check_next(s, timer, is_guard));
    if is_guard {
        check_guard();
    }
}

fn check_next(s: &mut State, timer: usize, is_guard: bool) {
    let start = s.timers[&timer].start;
    let next = s.events.iter().find_map(|Reverse((at, _, event))| {
        (*event == Event::Timer(timer, start)).then_some(*at - s.now)
    });
    let limited = s.groups.limited > 0;
    let (least, most) = match is_guard {
        true => (s.until(GUARD_NS), s.until(GUARD_NS)),
        false => {
            let pauses = 1 + s.groups.limited as u64 / 128;
            (
                s.until(RELEASE_NS.0),
                s.until(RELEASE_NS.1.max(pauses * RELEASE_NS.0)),
            )
        }
    };
    let fits = match next {
        None => !is_guard && !limited,
        Some(ns) => (least..=most).contains(&ns),
    };
    if !fits {
        let which = if is_guard { "guard" } else { "timer of quotas" };
        s.finding(format!(
            "the {which} fires again in {next:?} ns, and should in {least} to {most}"
        ));
    }
}

/// Tasks that have waited for too long are in front of the others.
fn check_guard() {
    let cpus = with(|s| s.cpus.len() as i64);
    let own_queues = (0..cpus).flat_map(|cpu| [FAIR, OUTSIDE, RANKED].map(|queue| own(queue, cpu)));
    for queue in [FAIR, OUTSIDE, RANKED].into_iter().chain(own_queues) {
        let tasks: Vec<(TaskId, _, _)> = with(|s| {
            let dsq = s.queues.get(&queue).into_iter().flat_map(|dsq| dsq.iter());
            dsq.map(|task| (task, s.tasks[task].fields.task, s.tasks[task].cpu))
                .collect()
        });
        let mut others = None;
        for (task, pointer, cpu) in tasks {
            let l = look(pointer, cpu);
            let waits = l.starved_since != 0 && since(l.now, l.starved_since) > LONG;
            let clock = if queue & 0xf_ffff == RANKED || queue >> 32 == RANKED >> 16 {
                l.sharing_clock
            } else {
                l.fair_now
            };
            let is_in_front = before(l.vtime, clock.wrapping_sub(1 << 51));
            if waits && l.has_context != 0 && (!is_in_front || others.is_some()) {
                with(|s| {
                    s.finding(format!(
                        "task {task} has waited for more than 5 s in {queue:#x}, and is not in \
                         front ({others:?})"
                    ))
                });
            }
            if !waits && l.has_context != 0 {
                others = Some(task);
                let is_far = before(l.vtime, clock.wrapping_sub(1 << 51));
                if is_far && l.starved_since != 0 {
                    with(|s| s.finding(format!("task {task} is in front without a long wait")));
                }
            }
        }
    }
}
