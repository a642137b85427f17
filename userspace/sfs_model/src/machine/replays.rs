//! The replayer on the machine: a real-time process that forks each invocation at its arrival,
//! after `userspace/faas_replay/src/process.rs`.

use super::starts::{born_as, place_task};
use super::Machine;
use crate::loader;
use crate::replay::LEAD_NS;
use sfs_kernel_model::higher;
use sfs_kernel_model::replay::{lateness, stretched};
use sfs_kernel_model::state::{with, Event, State};
use sfs_kernel_model::workload::Behaviour;

/// The CPU of the replayer. select_task_rq_rt() wakes it up where it was, unless a task of a higher
/// class runs there.
const CPU: usize = 0;
/// The kernel's number of SCHED_FIFO's priority 50: MAX_RT_PRIO - 1 - 50.
const PRIO: i32 = 49;

/// Processes that `faasbench run` starts before the trace, ns after load: `sfs_waste` and the
/// replayer. Both count as arrivals.
const HELPERS_NS: [u64; 2] = [36_000_000, 180_000_000];
/// CPU time of each, us.
const HELPER_US: u64 = 5_000;

impl Machine {
    /// Starts the replayer, if there is one. Returns whether there is.
    pub(super) fn start_replay(&mut self) -> bool {
        let Some(replayer) = &mut self.replayer else {
            return false;
        };
        let replay = replayer.replay();
        let first = replayer.arrivals.first().copied().unwrap_or(0);
        higher::add_on(CPU, PRIO);
        with(|s| {
            s.replay = Some(replay);
            s.after(LEAD_NS + first, Event::Arrival);
            for (helper, ns) in (0..).zip(HELPERS_NS) {
                s.after(ns, Event::Forked(u32::MAX - helper));
            }
        });
        true
    }

    /// The replayer's CPU sees that the time of an arrival has come: the replayer wakes up, or is
    /// still busy. It forks, and then collects what has ended.
    pub(super) fn replay_next(&mut self) {
        let Some(replayer) = &mut self.replayer else {
            return;
        };
        let number = replayer.next;
        replayer.next += 1;
        let next = replayer.arrivals.get(replayer.next).copied();
        let costs = replayer.expenses.clone();
        with(|s| {
            if let Some(next) = next {
                let at = s.booted_at + LEAD_NS + next + lateness(s);
                s.after(at.saturating_sub(s.now), Event::Arrival);
            }
            s.here = CPU;
            let gone = s.replay.as_ref().map_or(0, |replay| replay.gone);
            let ended = (gone - replayer.collected) as u64;
            replayer.collected = gone;
            let begins = replayer.busy_until.max(s.now + prompt(s, costs.wake_ns));
            let forked = begins + prompt(s, costs.fork_ns);
            let rest = costs.after_ns + ended * costs.collect_ns;
            replayer.busy_until = forked + prompt(s, rest);
            higher::run_for(s, CPU, replayer.busy_until - s.now);
            s.after(forked - s.now, Event::Forked(number as u32));
        });
    }

    /// The replayer has forked an invocation: wake_up_new_task().
    pub(super) fn forked(&mut self, number: u32) {
        let replayer = self.replayer.as_ref();
        if replayer.is_some_and(|of| number as usize >= of.arrivals.len()) {
            let helper = Behaviour::Function {
                turns: 1,
                runs_us: HELPER_US,
            };
            let place = self.place_of_arrival();
            return born_as(place_task(helper, false, None, place), helper, CPU);
        }
        let behaviour = Behaviour::Invocation {
            number,
            is_last: false,
        };
        let place = self.place_of_arrival();
        let task = place_task(behaviour, false, None, place);
        if let Some(replayer) = &self.replayer {
            loader::name_task(task, &replayer.programs[number as usize]);
        }
        with(|s| {
            s.here = CPU;
            s.tasks[task].cpu = CPU;
            let now = s.now;
            if let Some(replay) = &mut s.replay {
                replay.invocations[number as usize].forked_at = now;
            }
        });
        born_as(task, behaviour, CPU);
    }

    /// Ends the run when all invocations have ended.
    pub(super) fn end_replay(&mut self) {
        let is_over = with(|s| {
            let replay = s.replay.as_ref();
            replay.is_some_and(|replay| replay.gone == replay.invocations.len())
        });
        if is_over {
            self.end = with(|s| s.now);
        }
    }
}

/// The time that the replayer takes for `ns` of work. It begins at the interrupt, in a turn of its
/// CPU, so only a part of its work waits for turns of other CPUs: in a guest 186 us took 204 us with
/// two busy CPUs, and 443 us with four.
fn prompt(s: &State, ns: u64) -> u64 {
    (ns + stretched(s, ns)) / 2
}
