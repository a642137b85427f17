//! Computes the wasted time from the scheduling events.

use std::collections::HashMap;

use crate::report::{Report, Stretch};
use crate::waits::Waits;

/// A CPU that idles for less than this while a task waits is not wasted: it is
/// handling the wake-up interrupt and the switch. In ns.
pub const ON_THE_WAY_NS: u64 = 100_000;

/// The CPUs that a task may use: 64 per word, the first in the lowest bit.
pub type Cpus = [u64; 4];

/// A task that begins to wait for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// The thread.
    pub thread: i32,
    /// Its name.
    pub name: String,
    /// The CPUs that it may use; none if it has stopped waiting, as far as is
    /// known.
    pub cpus: Cpus,
    /// Whether it is a kernel thread with a nice value of 0 or less.
    pub kernel: bool,
    /// Whether it was woken up.
    pub woken: bool,
}

/// A scheduling event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Time of the event, in ns of a monotonic clock.
    pub at_ns: u64,
    /// The task that begins to wait because it woke up or was preempted; or a
    /// waiting task whose CPUs change.
    pub waits: Option<Waiter>,
    /// The CPU that switches and the thread that gets it, 0 if it becomes idle;
    /// or the thread that already has it and changes its class.
    pub switch: Option<(usize, i32)>,
    /// Whether that thread is a real-time task.
    pub real_time: bool,
    /// The CPU on which a softirq ends, and the softirq's length in ns.
    pub softirq: Option<(usize, u64)>,
}

/// Accumulates the wasted time.
#[derive(Debug, Default)]
pub struct Account {
    first_ns: Option<u64>,
    last_ns: u64,
    /// When each CPU became idle; none: it is busy, or its state is unknown.
    idle: Vec<Option<u64>>,
    waiting: HashMap<i32, (u64, Waiter)>,
    stretches: Vec<Stretch>,
    waits: Waits,
}

impl Account {
    /// Processes `event`. Events must be ordered by time; a late event counts
    /// at the time of the previous one.
    pub fn add(&mut self, event: Event) {
        let now = event.at_ns.max(self.last_ns);
        self.first_ns.get_or_insert(now);
        self.last_ns = now;
        self.waits.add(&event, now);
        if let Some((cpu, thread)) = event.switch {
            self.switch(cpu, thread, now);
        }
        match event.waits {
            Some(waiter) if waiter.cpus == Cpus::default() => self.end_wait(waiter.thread, now),
            Some(waiter) => self.wait(waiter, now),
            None => {}
        }
    }

    /// `waiter` begins to wait, or its CPUs change. After a change only the
    /// CPUs that it could use all the time count; if there are none, its wait
    /// starts again.
    fn wait(&mut self, waiter: Waiter, now: u64) {
        let Some((since, before)) = self.waiting.get(&waiter.thread) else {
            self.waiting.insert(waiter.thread, (now, waiter));
            return;
        };
        let cpus = std::array::from_fn(|word| before.cpus[word] & waiter.cpus[word]);
        if cpus == before.cpus {
            return;
        }
        let since = *since;
        self.end_wait(waiter.thread, now);
        let (since, cpus) = match cpus {
            none if none == Cpus::default() => (now, waiter.cpus),
            cpus => (since, cpus),
        };
        let waiter = Waiter { cpus, ..waiter };
        self.waiting.insert(waiter.thread, (since, waiter));
    }

    fn switch(&mut self, cpu: usize, thread: i32, now: u64) {
        if self.idle.len() <= cpu {
            self.idle.resize(cpu + 1, None);
        }
        if thread != 0 {
            self.end_wait(thread, now);
        }
        self.end_idling(cpu, now);
        self.idle[cpu] = (thread == 0).then_some(now);
    }

    fn end_wait(&mut self, thread: i32, now: u64) {
        let Some((since, waiter)) = self.waiting.remove(&thread) else {
            return;
        };
        let idle = std::mem::take(&mut self.idle);
        for (cpu, idle_since) in idle.iter().enumerate() {
            if let Some(idle_since) = *idle_since {
                self.stretch(&waiter, cpu, since.max(idle_since), now);
            }
        }
        self.idle = idle;
    }

    fn end_idling(&mut self, cpu: usize, now: u64) {
        let Some(idle_since) = self.idle[cpu].take() else {
            return;
        };
        let waiting = std::mem::take(&mut self.waiting);
        for (since, waiter) in waiting.values() {
            self.stretch(waiter, cpu, idle_since.max(*since), now);
        }
        self.waiting = waiting;
    }

    fn stretch(&mut self, waiter: &Waiter, cpu: usize, from_ns: u64, to_ns: u64) {
        let length_ns = to_ns - from_ns;
        if length_ns < ON_THE_WAY_NS || !may_use(&waiter.cpus, cpu) {
            return;
        }
        self.stretches.push(Stretch {
            from_ns,
            length_ns,
            thread: waiter.thread,
            name: waiter.name.clone(),
            cpu,
        });
    }

    /// Ends the account: tasks that still wait, and CPUs that still idle, have
    /// done so until the last event. `lost` events are missing here.
    pub fn report(mut self, lost: u64) -> Report {
        for cpu in 0..self.idle.len() {
            self.end_idling(cpu, self.last_ns);
        }
        let first_ns = self.first_ns.unwrap_or(self.last_ns);
        Report {
            watched: vec![(first_ns, self.last_ns)],
            stretches: self.stretches,
            waits: self.waits.finish(self.last_ns),
            lost,
        }
    }
}

/// Returns whether `cpus` contains `cpu`.
pub fn may_use(cpus: &Cpus, cpu: usize) -> bool {
    cpus.get(cpu / 64)
        .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const ANYWHERE: Cpus = [u64::MAX; 4];

    fn waiter(thread: i32, cpus: Cpus) -> Option<Waiter> {
        let name = format!("t{thread}");
        Some(Waiter {
            thread,
            name,
            cpus,
            kernel: false,
            woken: true,
        })
    }

    fn switch(at_ns: u64, cpu: usize, thread: i32) -> Event {
        let switch = Some((cpu, thread));
        Event {
            at_ns,
            switch,
            ..Event::default()
        }
    }

    fn wake(at_ns: u64, thread: i32, cpus: Cpus) -> Event {
        let waits = waiter(thread, cpus);
        Event {
            at_ns,
            waits,
            ..Event::default()
        }
    }

    fn report(events: Vec<Event>) -> Report {
        let mut account = Account::default();
        events.into_iter().for_each(|event| account.add(event));
        account.report(0)
    }

    #[test]
    fn a_cpu_that_idles_while_a_task_waits_is_wasted() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(2 * MS, 8, ANYWHERE),
            switch(9 * MS, 1, 8),
        ]);
        assert_eq!(report.wasted_ns(), 7 * MS);
        assert_eq!(report.watched_ns(), 9 * MS);
        let longest = report.longest(1)[0];
        assert_eq!((longest.from_ns, longest.length_ns), (2 * MS, 7 * MS));
        assert_eq!((longest.thread, longest.cpu), (8, 1));
    }

    #[test]
    fn the_wake_up_of_an_idle_cpu_is_not_wasted() {
        let report = report(vec![
            switch(0, 0, 0),
            wake(MS, 8, ANYWHERE),
            switch(MS + ON_THE_WAY_NS - 1, 0, 8),
        ]);
        assert_eq!(report.wasted_ns(), 0);
        assert!(report.stretches.is_empty());
    }

    #[test]
    fn a_confined_task_wastes_no_other_cpus() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(0, 8, [1, 0, 0, 0]),
            switch(9 * MS, 0, 8),
        ]);
        assert_eq!(report.wasted_ns(), 0);
    }

    #[test]
    fn after_a_change_of_cpus_the_old_ones_are_not_wasted() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(0, 8, ANYWHERE),
            wake(MS, 8, [1, 0, 0, 0]),
            switch(9 * MS, 0, 8),
        ]);
        assert_eq!(report.longest_ns(), MS);
    }

    #[test]
    fn a_change_to_disjoint_cpus_restarts_the_wait() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(0, 8, [1, 0, 0, 0]),
            wake(4 * MS, 8, [2, 0, 0, 0]),
            switch(9 * MS, 1, 8),
        ]);
        assert_eq!(report.longest_ns(), 5 * MS);
    }

    #[test]
    fn a_change_to_the_same_cpus_continues_the_wait() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(0, 8, ANYWHERE),
            wake(4 * MS, 8, ANYWHERE),
            switch(9 * MS, 0, 8),
        ]);
        assert_eq!(report.longest_ns(), 9 * MS);
    }

    #[test]
    fn the_end_of_a_wait_ends_the_waste() {
        let report = report(vec![
            switch(0, 0, 7),
            switch(0, 1, 0),
            wake(MS, 8, ANYWHERE),
            wake(3 * MS, 8, Cpus::default()),
            switch(9 * MS, 1, 8),
        ]);
        assert_eq!(report.wasted_ns(), 2 * MS);
    }

    #[test]
    fn one_task_cannot_waste_two_cpus() {
        let report = report(vec![
            switch(0, 0, 0),
            switch(0, 1, 0),
            wake(0, 8, ANYWHERE),
            switch(5 * MS, 0, 8),
        ]);
        assert_eq!(report.wasted_ns(), 5 * MS);
    }

    #[test]
    fn a_preempted_task_waits() {
        let mut preempted = switch(MS, 0, 9);
        preempted.waits = waiter(7, ANYWHERE);
        let report = report(vec![switch(0, 0, 7), switch(0, 1, 0), preempted]);
        assert_eq!(report.longest_ns(), 0);
    }

    #[test]
    fn waits_at_the_end_count() {
        let report = report(vec![
            switch(0, 0, 0),
            wake(0, 8, ANYWHERE),
            switch(6 * MS, 1, 9),
        ]);
        assert_eq!(report.wasted_ns(), 6 * MS);
    }

    #[test]
    fn a_report_is_cut_to_the_requested_spans() {
        let report = report(vec![
            switch(0, 0, 0),
            wake(2 * MS, 8, ANYWHERE),
            switch(9 * MS, 0, 8),
            switch(10 * MS, 0, 8),
        ]);
        let cut = report.during(&[(7 * MS, 20 * MS), (0, 4 * MS)]);
        assert_eq!(cut.watched_ns(), 7 * MS);
        assert_eq!((cut.wasted_ns(), cut.longest_ns()), (4 * MS, 2 * MS));
        let longest = cut.longest(1)[0];
        assert_eq!((longest.from_ns, longest.length_ns), (2 * MS, 2 * MS));
        assert_eq!(report.during(&[(0, 20 * MS)]), report);
        assert_eq!(report.during(&[]).wasted_ns(), 0);
        let sliver = (9 * MS - ON_THE_WAY_NS + 1, 20 * MS);
        assert!(report.during(&[sliver]).stretches.is_empty());
    }

    /// Two CPUs and three threads: the thread on each CPU, and the waiting
    /// threads, at each step.
    fn brute_force(events: &[Event]) -> u64 {
        let last = events.last().map_or(0, |event| event.at_ns);
        let mut longest = 0;
        for thread in 1..=3 {
            for cpu in 0..2 {
                let (mut waits, mut idles, mut both_since) = (false, false, None);
                for event in events {
                    if let Some((on, runs)) = event.switch {
                        idles = if on == cpu { runs == 0 } else { idles };
                        waits &= runs != thread;
                        // Each idle period is a stretch of its own.
                        if on == cpu {
                            longest = longest.max(length(both_since.take(), event.at_ns));
                        }
                    }
                    waits |= event.waits.as_ref().is_some_and(|one| one.thread == thread);
                    if !(waits && idles) {
                        longest = longest.max(length(both_since.take(), event.at_ns));
                    } else {
                        both_since.get_or_insert(event.at_ns);
                    }
                }
                longest = longest.max(length(both_since, last));
            }
        }
        if longest < ON_THE_WAY_NS {
            0
        } else {
            longest
        }
    }

    fn length(since: Option<u64>, now: u64) -> u64 {
        since.map_or(0, |since| now - since)
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = (0..MS, 0..2_usize, 0..4_i32, any::<bool>());
        prop::collection::vec(event, 1..60).prop_map(|steps| {
            let mut now = 0;
            let step = |(later, cpu, thread, wakes)| {
                now += later;
                if wakes && thread > 0 {
                    wake(now, thread, ANYWHERE)
                } else {
                    switch(now, cpu, thread)
                }
            };
            steps.into_iter().map(step).collect()
        })
    }

    proptest! {
        #[test]
        fn the_longest_stretch_agrees_with_brute_force(events in events()) {
            let expected = brute_force(&events);
            prop_assert_eq!(report(events).longest_ns(), expected);
        }

        #[test]
        fn waste_is_at_most_all_cpu_time(events in events()) {
            let report = report(events);
            prop_assert!(report.wasted_ns() <= 2 * report.watched_ns());
            prop_assert!(report.wasted_ns() >= report.longest_ns());
        }

        #[test]
        fn parts_are_at_most_the_whole(events in events(), at in 0..60 * MS) {
            let report = report(events);
            let (before, after) = (report.during(&[(0, at)]), report.during(&[(at, u64::MAX)]));
            prop_assert_eq!(before.watched_ns() + after.watched_ns(), report.watched_ns());
            prop_assert!(before.wasted_ns() + after.wasted_ns() <= report.wasted_ns());
            let longest = before.longest_ns().max(after.longest_ns());
            prop_assert!(longest <= report.longest_ns());
        }
    }
}
