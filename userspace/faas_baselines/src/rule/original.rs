//! The rule of `sfs-user`: SFS as its authors built it, from user space (SC'22).
//!
//! Sections of the paper in parentheses:
//!
//! - New functions enter one global queue with the time of their invocation (V.B, steps 1 and
//!   2). Meanwhile they are ordinary tasks, which run if no FIFO task wants the CPU (VI).
//! - There is a worker for each CPU. A free worker takes the head of the queue, and makes it
//!   SCHED_FIFO (V.B, step 2; VI).
//! - A function that ends before S frees its worker (V.B, case 4.1).
//! - One that has used S in FILTER becomes an ordinary task, for good (V.B, case 4.2). The
//!   worker's timer measures that (V.D): real time, without the time found blocked.
//! - Each worker looks every 4 ms whether its function is blocked. If so, it records what is
//!   left of S, makes it an ordinary task, and takes the next one. Once a look finds it
//!   runnable again it goes to the end of the queue with the rest of S (V.D, VI).
//! - A worker that is about to take a function which has waited for O x S or more, O = 3,
//!   leaves it an ordinary task (V.B, case 4.4; V.E). Here each function that is taken is
//!   judged by its own wait.
//! - S = mean inter-arrival time of the last 100 functions x CPUs, computed anew every 100
//!   (V.C). The paper does not say what S is before that; here it is 100 ms, as in scx_sfs.
//!
//! It does not say either how a worker learns of a function's end: here at once, from the
//! kernel, which is to the rule's advantage.

use super::{Class, Look, Order, Pid, Rule, Seen};
use sfs_policy::defaults::OVERLOAD_FACTOR;
use sfs_policy::Controller;
use std::collections::{BTreeMap, VecDeque};

/// The interval of the workers' looks in ns (V.D).
pub const POLL_NS: u64 = 4_000_000;

/// The state of the rule.
#[derive(Debug)]
pub struct Original {
    slice: Controller,
    workers: usize,
    poll_ns: u64,
    /// The global queue: processes, and since when they wait.
    queue: VecDeque<(Pid, u64)>,
    /// All processes that have not been left to the fair scheduler for good.
    known: BTreeMap<Pid, State>,
    /// How many of them are running.
    running: usize,
    /// When the workers look next, while they have anything to look at.
    next_poll_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the queue, with what is left of S, if it has been in FILTER before.
    Queued { left_ns: Option<u64> },
    /// In FILTER since then, with what was left of S.
    Running { since_ns: u64, left_ns: u64 },
    /// Blocked, with what is left of S.
    Blocked { left_ns: u64 },
}

impl Original {
    /// `workers` is the number of CPUs.
    pub fn new(slice: Controller, workers: u32, poll_ns: u64) -> Self {
        Self {
            slice,
            workers: workers as usize,
            poll_ns,
            queue: VecDeque::new(),
            known: BTreeMap::new(),
            running: 0,
            next_poll_ns: None,
        }
    }

    /// Lets free workers take functions from the queue.
    fn dispatch(&mut self, now_ns: u64, orders: &mut Vec<Order>) {
        while self.running < self.workers {
            let Some((pid, since_ns)) = self.queue.pop_front() else {
                return;
            };
            // One that has ended, or waits again further back, is not this one.
            let Some(State::Queued { left_ns }) = self.known.get(&pid).copied() else {
                continue;
            };
            let slice_ns = self.slice.slice_ns();
            let waited_ns = now_ns.saturating_sub(since_ns);
            if waited_ns as f64 >= OVERLOAD_FACTOR * slice_ns as f64 {
                self.known.remove(&pid);
                continue;
            }
            let state = State::Running {
                since_ns: now_ns,
                left_ns: left_ns.unwrap_or(slice_ns),
            };
            self.known.insert(pid, state);
            self.running += 1;
            self.next_poll_ns.get_or_insert(now_ns + self.poll_ns);
            orders.push(Order {
                pid,
                class: Class::Fifo,
            });
        }
    }

    fn enqueue(&mut self, pid: Pid, left_ns: Option<u64>, since_ns: u64) {
        self.known.insert(pid, State::Queued { left_ns });
        self.queue.push_back((pid, since_ns));
    }

    /// Takes `pid` out of FILTER: the fair scheduler has it now.
    fn take_out(&mut self, pid: Pid, orders: &mut Vec<Order>) {
        self.running -= 1;
        orders.push(Order {
            pid,
            class: Class::Fair,
        });
    }

    /// When the slice of the next one in FILTER is over.
    fn next_end_ns(&self) -> Option<u64> {
        let ends = self.known.values().filter_map(|state| match state {
            State::Running { since_ns, left_ns } => Some(since_ns.saturating_add(*left_ns)),
            _ => None,
        });
        ends.min()
    }
}

impl Rule for Original {
    fn look(&self) -> Look {
        Look::Blocked
    }

    fn began(&mut self, pid: Pid, at_ns: u64, now_ns: u64, orders: &mut Vec<Order>) {
        self.slice.on_arrivals(&[at_ns]);
        self.enqueue(pid, None, at_ns);
        self.dispatch(now_ns, orders);
    }

    fn ended(&mut self, pid: Pid, now_ns: u64, orders: &mut Vec<Order>) {
        match self.known.remove(&pid) {
            Some(State::Running { .. }) => {
                self.running -= 1;
                self.dispatch(now_ns, orders);
            }
            // A later process may have its number.
            Some(State::Queued { .. }) => self.queue.retain(|(queued, _)| *queued != pid),
            Some(State::Blocked { .. }) | None => {}
        }
    }

    fn wake_ns(&self) -> Option<u64> {
        let end_ns = self.next_end_ns();
        match (end_ns, self.next_poll_ns) {
            (Some(end_ns), Some(poll_ns)) => Some(end_ns.min(poll_ns)),
            (one, other) => one.or(other),
        }
    }

    fn due(&mut self, now_ns: u64, looks: &mut Vec<Pid>, orders: &mut Vec<Order>) {
        let is_over = |state: &State| match state {
            State::Running { since_ns, left_ns } => since_ns.saturating_add(*left_ns) <= now_ns,
            _ => false,
        };
        let over = self.known.iter().filter(|(_, state)| is_over(state));
        let over: Vec<Pid> = over.map(|(pid, _)| *pid).collect();
        for pid in over {
            self.known.remove(&pid);
            self.take_out(pid, orders);
        }
        self.dispatch(now_ns, orders);
        if self.next_poll_ns.is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        let is_looked_at = |state: &State| !matches!(state, State::Queued { .. });
        let all = self.known.iter().filter(|(_, state)| is_looked_at(state));
        looks.extend(all.map(|(pid, _)| *pid));
        self.next_poll_ns = (!looks.is_empty()).then_some(now_ns + self.poll_ns);
    }

    fn seen(&mut self, pid: Pid, seen: Seen, now_ns: u64, orders: &mut Vec<Order>) {
        let Seen::Blocked(blocked) = seen else {
            return;
        };
        match self.known.get(&pid).copied() {
            Some(State::Running { since_ns, left_ns }) if blocked => {
                let left_ns = left_ns.saturating_sub(now_ns.saturating_sub(since_ns));
                self.known.insert(pid, State::Blocked { left_ns });
                self.take_out(pid, orders);
            }
            Some(State::Blocked { left_ns }) if !blocked => {
                self.enqueue(pid, Some(left_ns), now_ns);
            }
            _ => return,
        }
        self.dispatch(now_ns, orders);
    }
}

#[cfg(test)]
mod tests {
    use super::super::slice;
    use super::*;

    const MS: u64 = 1_000_000;

    /// S is 50 ms.
    fn rule(workers: u32) -> Original {
        let slice = slice(Some(50 * MS), workers).unwrap();
        Original::new(slice, workers, POLL_NS)
    }

    fn told(call: impl FnOnce(&mut Vec<Order>)) -> Vec<(Pid, Class)> {
        let mut orders = Vec::new();
        call(&mut orders);
        orders.iter().map(|one| (one.pid, one.class)).collect()
    }

    fn began(rule: &mut Original, pid: Pid, ms: u64) -> Vec<(Pid, Class)> {
        told(|orders| rule.began(pid, ms * MS, ms * MS, orders))
    }

    fn ended(rule: &mut Original, pid: Pid, ms: u64) -> Vec<(Pid, Class)> {
        told(|orders| rule.ended(pid, ms * MS, orders))
    }

    fn seen(rule: &mut Original, pid: Pid, blocked: bool, ms: u64) -> Vec<(Pid, Class)> {
        told(|orders| rule.seen(pid, Seen::Blocked(blocked), ms * MS, orders))
    }

    fn due(rule: &mut Original, ms: u64) -> (Vec<Pid>, Vec<(Pid, Class)>) {
        let mut looks = Vec::new();
        let orders = told(|orders| rule.due(ms * MS, &mut looks, orders));
        (looks, orders)
    }

    #[test]
    fn there_are_as_many_fifo_functions_as_workers() {
        let mut rule = rule(2);
        assert_eq!(began(&mut rule, 1, 0), [(1, Class::Fifo)]);
        assert_eq!(began(&mut rule, 2, 1), [(2, Class::Fifo)]);
        assert_eq!(began(&mut rule, 3, 2), []);
        assert_eq!(began(&mut rule, 4, 3), []);
        assert_eq!(ended(&mut rule, 2, 9), [(3, Class::Fifo)], "first in");
        assert_eq!(ended(&mut rule, 3, 9), [(4, Class::Fifo)]);
        assert_eq!(ended(&mut rule, 4, 9), []);
    }

    #[test]
    fn a_used_slice_demotes_for_good() {
        let mut rule = rule(1);
        began(&mut rule, 1, 0);
        began(&mut rule, 2, 1);
        assert_eq!(rule.wake_ns(), Some(4 * MS), "the first look");
        assert_eq!(due(&mut rule, 4), (vec![1], vec![]));
        for ms in (8..50).step_by(4) {
            due(&mut rule, ms);
        }
        assert_eq!(rule.wake_ns(), Some(50 * MS), "the slice");
        let (looks, orders) = due(&mut rule, 50);
        assert_eq!(looks, [0; 0]);
        assert_eq!(orders, [(1, Class::Fair), (2, Class::Fifo)]);
        assert_eq!(seen(&mut rule, 1, true, 51), []);
        assert_eq!(ended(&mut rule, 1, 60), []);
    }

    #[test]
    fn a_blocked_one_comes_back_with_the_rest_of_its_slice() {
        let mut rule = rule(1);
        began(&mut rule, 1, 0);
        began(&mut rule, 2, 1);
        assert_eq!(due(&mut rule, 4).0, [1]);
        let both = [(1, Class::Fair), (2, Class::Fifo)];
        assert_eq!(seen(&mut rule, 1, true, 4), both);
        assert_eq!(due(&mut rule, 8).0, [1, 2]);
        assert_eq!(seen(&mut rule, 1, false, 8), [], "it waits behind 2");
        assert_eq!(due(&mut rule, 12).0, [2], "what waits is not looked at");
        assert_eq!(ended(&mut rule, 2, 14), [(1, Class::Fifo)]);
        assert_eq!(due(&mut rule, 59).1, [], "46 ms were left");
        assert_eq!(due(&mut rule, 60).1, [(1, Class::Fair)]);
        assert_eq!(rule.wake_ns().map(|ns| ns > 60 * MS), Some(true));
        assert_eq!(due(&mut rule, 70).0, [0; 0]);
        assert_eq!(rule.wake_ns(), None, "nothing is left to look at");
    }

    #[test]
    fn one_that_has_waited_too_long_is_left_to_the_fair_scheduler() {
        let mut rule = rule(1);
        began(&mut rule, 1, 0);
        began(&mut rule, 2, 0);
        began(&mut rule, 3, 1);
        // O x S = 150 ms: 2 has waited for that, 3 has not quite.
        assert_eq!(ended(&mut rule, 1, 150), [(3, Class::Fifo)]);
        assert_eq!(ended(&mut rule, 2, 151), []);
        assert_eq!(began(&mut rule, 4, 152), []);
        assert_eq!(ended(&mut rule, 3, 153), [(4, Class::Fifo)]);
    }

    #[test]
    fn one_that_ends_in_the_queue_is_not_taken() {
        let mut rule = rule(1);
        began(&mut rule, 1, 0);
        began(&mut rule, 2, 1);
        began(&mut rule, 3, 2);
        ended(&mut rule, 2, 3);
        began(&mut rule, 2, 4); // another one with its number
        assert_eq!(ended(&mut rule, 1, 5), [(3, Class::Fifo)]);
        assert_eq!(ended(&mut rule, 3, 6), [(2, Class::Fifo)]);
    }

    proptest::proptest! {
        /// Whatever happens, there are never more FIFO functions than workers, and a worker is
        /// only free while nobody waits.
        #[test]
        fn workers_are_work_conserving(steps in proptest::collection::vec((0..4u8, 1..12i32), 1..200)) {
            let mut rule = rule(3);
            let mut fifo = std::collections::BTreeSet::new();
            for (ms, (what, pid)) in steps.into_iter().enumerate() {
                let ms = ms as u64 * 3;
                let mut orders = match what {
                    0 if !rule.known.contains_key(&pid) => began(&mut rule, pid, ms),
                    1 => { fifo.remove(&pid); ended(&mut rule, pid, ms) }
                    2 => seen(&mut rule, pid, true, ms),
                    _ => seen(&mut rule, pid, false, ms),
                };
                orders.extend(due(&mut rule, ms).1);
                for (pid, class) in orders {
                    match class {
                        Class::Fifo => proptest::prop_assert!(fifo.insert(pid)),
                        _ => proptest::prop_assert!(fifo.remove(&pid)),
                    }
                }
                proptest::prop_assert!(fifo.len() == rule.running && rule.running <= 3);
                proptest::prop_assert!(rule.running == 3 || rule.queue.is_empty());
            }
        }
    }
}
