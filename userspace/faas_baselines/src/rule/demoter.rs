//! The rule of `renice` and `idle`: what has used S of CPU time gets a lower class, for good.
//!
//! A process that has used `u` of S cannot have used all of it before another S - u has
//! passed, so it is not looked at before that; then, and at least `poll` later, again. Few
//! looks are needed for as long as the CPUs are free, and one every `poll` at most otherwise.
//! (A process that computes with several threads may be found late. Functions here have one.)
//!
//! With several steps it goes down by and by: with four, at S/8, S/4, S/2 and S of CPU time, to
//! nice 4, 9, 14 and the lowest class. That comes closer to "least attained service first".

use super::{Class, Look, Order, Pid, Rule, Seen};
use sfs_policy::Controller;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The default of `poll`, in ns: what a tick of 250 Hz takes.
pub const POLL_NS: u64 = 4_000_000;

/// The nice value of the least weight.
pub const LOWEST_NICE: i32 = 19;

/// The state of the rule.
#[derive(Debug)]
pub struct Demoter {
    slice: Controller,
    /// The class of what has used S.
    lowest: Class,
    /// Number of steps to it, 1 or more.
    steps: u32,
    poll_ns: u64,
    /// The processes that have not used their S.
    watched: HashMap<Pid, Watched>,
    /// When to look at which. A process that ended, or another with its number, has another
    /// serial number.
    looks: BinaryHeap<Reverse<(u64, u64, Pid)>>,
    serial: u64,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    /// S when it began.
    slice_ns: u64,
    serial: u64,
    /// Steps that it has gone down.
    step: u32,
}

impl Demoter {
    /// Gives the class `lowest` to what has used the S of `slice`, in `steps` (1 or more), and
    /// looks at a process every `poll_ns` at most.
    pub fn new(slice: Controller, lowest: Class, steps: u32, poll_ns: u64) -> Self {
        Self {
            slice,
            lowest,
            steps: steps.max(1),
            poll_ns,
            watched: HashMap::new(),
            looks: BinaryHeap::new(),
            serial: 0,
        }
    }

    /// The CPU time in ns at which a process with S = `slice_ns` takes the step after `step`.
    fn step_at_ns(&self, slice_ns: u64, step: u32) -> u64 {
        let halvings = self.steps.saturating_sub(step + 1);
        slice_ns.checked_shr(halvings).unwrap_or(0)
    }

    /// The class after `step` steps.
    fn class(&self, step: u32) -> Class {
        match step >= self.steps {
            true => self.lowest,
            false => Class::Nice(LOWEST_NICE * step as i32 / self.steps as i32),
        }
    }

    fn look_at(&mut self, pid: Pid, serial: u64, at_ns: u64) {
        self.looks.push(Reverse((at_ns, serial, pid)));
    }
}

impl Rule for Demoter {
    fn look(&self) -> Look {
        Look::CpuTime
    }

    fn began(&mut self, pid: Pid, at_ns: u64, _now_ns: u64, _orders: &mut Vec<Order>) {
        self.slice.on_arrivals(&[at_ns]);
        let slice_ns = self.slice.slice_ns();
        self.serial += 1;
        let serial = self.serial;
        let one = Watched {
            slice_ns,
            serial,
            step: 0,
        };
        self.watched.insert(pid, one);
        let first_ns = self.step_at_ns(slice_ns, 0);
        self.look_at(pid, serial, at_ns.saturating_add(first_ns));
    }

    fn ended(&mut self, pid: Pid, _now_ns: u64, _orders: &mut Vec<Order>) {
        self.watched.remove(&pid);
    }

    fn wake_ns(&self) -> Option<u64> {
        self.looks.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    fn due(&mut self, now_ns: u64, looks: &mut Vec<Pid>, _orders: &mut Vec<Order>) {
        while let Some(&Reverse((at_ns, serial, pid))) = self.looks.peek() {
            if at_ns > now_ns {
                return;
            }
            self.looks.pop();
            let known = self.watched.get(&pid);
            if known.is_some_and(|one| one.serial == serial) {
                looks.push(pid);
            }
        }
    }

    fn seen(&mut self, pid: Pid, seen: Seen, now_ns: u64, orders: &mut Vec<Order>) {
        let (Seen::CpuTime(used_ns), Some(mut one)) = (seen, self.watched.get(&pid).copied())
        else {
            return;
        };
        let before = one.step;
        while one.step < self.steps && used_ns >= self.step_at_ns(one.slice_ns, one.step) {
            one.step += 1;
        }
        if one.step > before {
            let class = self.class(one.step);
            orders.push(Order { pid, class });
        }
        if one.step == self.steps {
            self.watched.remove(&pid);
            return;
        }
        let left_ns = self.step_at_ns(one.slice_ns, one.step) - used_ns;
        self.look_at(pid, one.serial, now_ns + left_ns.max(self.poll_ns));
        self.watched.insert(pid, one);
    }
}

#[cfg(test)]
mod tests {
    use super::super::slice;
    use super::*;

    const MS: u64 = 1_000_000;

    fn rule(after_ms: Option<u64>) -> Demoter {
        let slice = slice(after_ms.map(|ms| ms * MS), 4).unwrap();
        Demoter::new(slice, Class::Idle, 1, POLL_NS)
    }

    fn due(rule: &mut Demoter, now_ms: u64) -> Vec<Pid> {
        let (mut looks, mut orders) = (Vec::new(), Vec::new());
        rule.due(now_ms * MS, &mut looks, &mut orders);
        assert!(orders.is_empty());
        looks
    }

    fn seen(rule: &mut Demoter, pid: Pid, used_ms: u64, now_ms: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        rule.seen(pid, Seen::CpuTime(used_ms * MS), now_ms * MS, &mut orders);
        orders
    }

    #[test]
    fn it_is_looked_at_when_it_can_have_used_its_slice() {
        let mut rule = rule(Some(50));
        let mut orders = Vec::new();
        rule.began(7, 100 * MS, 101 * MS, &mut orders);
        assert_eq!(rule.wake_ns(), Some(150 * MS));
        assert_eq!(due(&mut rule, 149), [0; 0]);
        assert_eq!(due(&mut rule, 150), [7]);
        assert_eq!(seen(&mut rule, 7, 30, 150), []);
        assert_eq!(rule.wake_ns(), Some(170 * MS), "20 ms are left");
        assert_eq!(due(&mut rule, 170), [7]);
        assert_eq!(seen(&mut rule, 7, 49, 170), []);
        assert_eq!(
            rule.wake_ns(),
            Some(174 * MS),
            "1 ms is left: the next poll"
        );
        assert_eq!(due(&mut rule, 174), [7]);
        let order = Order {
            pid: 7,
            class: Class::Idle,
        };
        assert_eq!(seen(&mut rule, 7, 50, 174), [order]);
        assert_eq!(rule.wake_ns(), None, "once is enough");
    }

    #[test]
    fn several_steps_lead_down() {
        let mut rule = rule(Some(80));
        rule.steps = 4;
        let mut orders = Vec::new();
        rule.began(7, 0, 0, &mut orders);
        assert_eq!(due(&mut rule, 10), [7]);
        let mut class =
            |used_ms, now_ms| seen(&mut rule, 7, used_ms, now_ms).first().map(|o| o.class);
        assert_eq!(class(9, 10), None);
        assert_eq!(class(10, 14), Some(Class::Nice(4)));
        assert_eq!(class(19, 24), None);
        assert_eq!(class(45, 70), Some(Class::Nice(14)), "two steps at once");
        assert_eq!(class(81, 110), Some(Class::Idle));
        assert_eq!(class(90, 120), None);
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let mut rule = rule(Some(50));
        let mut orders = Vec::new();
        rule.began(7, 0, 0, &mut orders);
        rule.ended(7, 10 * MS, &mut orders);
        assert_eq!(due(&mut rule, 50), [0; 0]);
        assert_eq!(seen(&mut rule, 7, 90, 90), []);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut rule = rule(Some(50));
        let mut orders = Vec::new();
        rule.began(7, 0, 0, &mut orders);
        rule.ended(7, 10 * MS, &mut orders);
        rule.began(7, 20 * MS, 20 * MS, &mut orders);
        assert_eq!(due(&mut rule, 50), [0; 0], "that was of the first");
        assert_eq!(due(&mut rule, 70), [7]);
    }

    #[test]
    fn the_slice_follows_the_arrivals() {
        let mut rule = rule(None);
        let mut orders = Vec::new();
        for pid in 1..=100 {
            // 10 ms apart, on 4 CPUs: 40 ms once there are a hundred.
            rule.began(pid, pid as u64 * 10 * MS, 0, &mut orders);
        }
        assert_eq!(rule.watched[&99].slice_ns, 100 * MS);
        assert_eq!(rule.watched[&100].slice_ns, 40 * MS);
    }
}
