//! Measures the waits for a CPU.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::account::{may_use, Cpus, Event, Waiter};

/// Minimum length of a recorded wait, in ns.
pub const KEPT_NS: u64 = 1_000_000;

/// Maximum run time since the last wake-up of a short turn, in ns.
pub const SHORT_NS: u64 = 1_000_000;

/// Maximum number of other threads named per wait.
const RUNNERS: usize = 4;

/// Kinds of waiting tasks; a scheduler's promises depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A kernel thread that has woken up, with a nice value of 0 or less.
    Kernel,
    /// A thread of a process that has woken up after a short turn.
    Short,
    /// All others.
    Other,
}

/// A wait for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The start, on the events' clock.
    pub from_ns: u64,
    /// The length, minus the shortest time for which real-time tasks and
    /// softirqs had one of its CPUs.
    pub length_ns: u64,
    /// The waiting thread.
    pub thread: i32,
    /// The thread's name.
    pub name: String,
    /// The kind of task.
    pub kind: Kind,
    /// The threads that ran longest meanwhile on the CPU that it finally got.
    pub behind: Vec<Runner>,
}

/// A thread that had a CPU while another waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// The thread; 0: none, the CPU idled.
    pub thread: i32,
    /// The thread's name, if it has ever waited.
    pub name: String,
    /// Total time on the CPU, in ns.
    pub length_ns: u64,
}

/// Accumulates the waits.
#[derive(Debug, Default)]
pub struct Waits {
    waiting: HashMap<i32, (u64, Kind, Waiter)>,
    cpus: Vec<Cpu>,
    /// Run time of each thread since it woke up.
    turns: HashMap<i32, u64>,
    names: HashMap<i32, String>,
    waits: Vec<Wait>,
}

/// A CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// The current thread; none: unknown.
    runs: Option<Run>,
    /// Earlier threads, and until when each ran.
    had: Vec<(Run, u64)>,
    /// Start and end of each softirq.
    softirqs: Vec<(u64, u64)>,
}

/// A thread on a CPU.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// 0: the CPU idles.
    thread: i32,
    since: u64,
    real_time: bool,
}

impl Cpu {
    /// The threads that had it from `from` until `now`, last first, with start
    /// and end.
    fn runs_since(&self, from: u64, now: u64) -> impl Iterator<Item = (Run, u64, u64)> + '_ {
        let running = self.runs.iter().map(move |run| (run, now));
        let had = self.had.iter().rev().map(|(run, end)| (run, *end));
        let runs = running.chain(had).take_while(move |(_, end)| *end > from);
        runs.map(move |(run, end)| (*run, run.since.max(from), end))
    }

    /// The time for which real-time tasks, and softirqs in other tasks, had it
    /// from `from` on, in ns.
    fn taken_since(&self, from: u64, now: u64) -> u64 {
        let runs = self.runs_since(from, now);
        runs.map(|(run, from, to)| match run.real_time {
            true => to - from,
            false => self.softirqs_between(from, to),
        })
        .sum()
    }

    /// The time of softirqs from `from` until `to`, in ns.
    fn softirqs_between(&self, from: u64, to: u64) -> u64 {
        let softirqs = self.softirqs.iter().rev();
        let softirqs = softirqs.take_while(|(_, end)| *end > from);
        let part = |(start, end): &(u64, u64)| to.min(*end).saturating_sub(from.max(*start));
        softirqs.map(part).sum()
    }

    /// The threads that had it from `from` on, with total times, longest first.
    fn had_since(&self, from: u64, now: u64) -> Vec<(i32, u64)> {
        let mut lengths = HashMap::new();
        for (run, from, to) in self.runs_since(from, now) {
            *lengths.entry(run.thread).or_default() += to - from;
        }
        let mut lengths: Vec<_> = lengths.into_iter().collect();
        lengths.sort_by_key(|&(thread, length)| (Reverse(length), thread));
        lengths
    }
}

impl Waits {
    /// Processes `event`, which is of the time `now`.
    pub fn add(&mut self, event: &Event, now: u64) {
        if let Some((cpu, thread)) = event.switch {
            self.switch(cpu, thread, event.real_time, now);
        }
        if let Some((cpu, length_ns)) = event.softirq {
            self.cpu(cpu).softirqs.push((now - length_ns.min(now), now));
        }
        match &event.waits {
            Some(waiter) if waiter.cpus == Cpus::default() => self.end(waiter.thread, None, now),
            Some(waiter) => self.begin(waiter, now),
            None => {}
        }
    }

    fn begin(&mut self, waiter: &Waiter, now: u64) {
        if let Some((_, _, waiting)) = self.waiting.get_mut(&waiter.thread) {
            waiting.cpus = waiter.cpus;
            return;
        }
        let kind = self.kind_of(waiter);
        self.names.insert(waiter.thread, waiter.name.clone());
        self.waiting
            .insert(waiter.thread, (now, kind, waiter.clone()));
    }

    /// Returns the kind of task. A wake-up begins a turn.
    fn kind_of(&mut self, waiter: &Waiter) -> Kind {
        if !waiter.woken {
            return Kind::Other;
        }
        match self.turns.insert(waiter.thread, 0) {
            _ if waiter.kernel => Kind::Kernel,
            Some(..SHORT_NS) => Kind::Short,
            _ => Kind::Other,
        }
    }

    fn cpu(&mut self, cpu: usize) -> &mut Cpu {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, Cpu::default);
        }
        &mut self.cpus[cpu]
    }

    fn switch(&mut self, cpu: usize, thread: i32, real_time: bool, now: u64) {
        self.cpu(cpu);
        self.end(thread, Some(cpu), now);
        let run = Run {
            thread,
            since: now,
            real_time,
        };
        let Some(before) = self.cpus[cpu].runs.replace(run) else {
            return;
        };
        self.cpus[cpu].had.push((before, now));
        if let Some(turn) = self.turns.get_mut(&before.thread) {
            *turn += now - before.since;
        }
    }

    /// Ends the wait of `thread`, which has got `cpu`, if that is known.
    fn end(&mut self, thread: i32, cpu: Option<usize>, now: u64) {
        let Some((from_ns, kind, waiter)) = self.waiting.remove(&thread) else {
            return;
        };
        let length_ns = now - from_ns;
        if length_ns < KEPT_NS {
            return;
        }
        let cpus = self.cpus.iter().enumerate();
        let taken = cpus.filter(|(cpu, _)| may_use(&waiter.cpus, *cpu));
        let taken = taken.map(|(_, cpu)| cpu.taken_since(from_ns, now));
        let length_ns = length_ns - taken.min().unwrap_or(0).min(length_ns);
        if length_ns >= KEPT_NS {
            self.waits.push(Wait {
                from_ns,
                length_ns,
                thread,
                name: waiter.name,
                kind,
                behind: cpu.map_or(vec![], |cpu| self.runners(cpu, from_ns, now)),
            });
        }
    }

    /// The threads that had `cpu` longest from `from` until `now`.
    fn runners(&self, cpu: usize, from: u64, now: u64) -> Vec<Runner> {
        let had = self.cpus[cpu].had_since(from, now).into_iter();
        let runner = |(thread, length_ns)| Runner {
            thread,
            name: self.names.get(&thread).cloned().unwrap_or_default(),
            length_ns,
        };
        had.take(RUNNERS).map(runner).collect()
    }

    /// Returns all waits; tasks that still wait have waited until `now`.
    pub fn finish(mut self, now: u64) -> Vec<Wait> {
        let mut left: Vec<i32> = self.waiting.keys().copied().collect();
        left.sort_unstable();
        left.into_iter()
            .for_each(|thread| self.end(thread, None, now));
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BOTH: Cpus = [3, 0, 0, 0];

    fn woken(at_ns: u64, thread: i32, cpus: Cpus) -> Event {
        Event {
            at_ns,
            waits: Some(Waiter {
                thread,
                name: "t".into(),
                cpus,
                kernel: false,
                woken: true,
            }),
            ..Event::default()
        }
    }

    fn switch(at_ns: u64, cpu: usize, thread: i32) -> Event {
        Event {
            at_ns,
            switch: Some((cpu, thread)),
            ..Event::default()
        }
    }

    fn real_time(at_ns: u64, cpu: usize, thread: i32) -> Event {
        Event {
            real_time: true,
            ..switch(at_ns, cpu, thread)
        }
    }

    fn waits(events: &[Event]) -> Vec<(i32, u64, Kind)> {
        let mut waits = Waits::default();
        events
            .iter()
            .for_each(|event| waits.add(event, event.at_ns));
        let waits = waits.finish(events.last().map_or(0, |event| event.at_ns));
        let short = |one: &Wait| (one.thread, one.length_ns, one.kind);
        waits.iter().map(short).collect()
    }

    #[test]
    fn a_wait_lasts_from_the_wake_up_to_the_cpu() {
        let events = [
            switch(0, 0, 7),
            woken(2 * MS, 8, BOTH),
            switch(9 * MS, 0, 8),
        ];
        assert_eq!(waits(&events), [(8, 7 * MS, Kind::Other)]);
    }

    #[test]
    fn short_turns_are_distinguished() {
        let events = [
            woken(0, 8, BOTH),
            switch(0, 0, 8),
            switch(SHORT_NS - 1, 0, 7),
            woken(2 * MS, 8, BOTH),
            switch(9 * MS, 0, 8),
            switch(11 * MS, 0, 7),
            woken(12 * MS, 8, BOTH),
            switch(20 * MS, 0, 8),
        ];
        let expected = [(8, 7 * MS, Kind::Short), (8, 8 * MS, Kind::Other)];
        assert_eq!(waits(&events), expected);
    }

    #[test]
    fn kernel_threads_are_distinguished() {
        let mut event = woken(0, 8, BOTH);
        event.waits.as_mut().unwrap().kernel = true;
        assert_eq!(
            waits(&[event.clone(), switch(5 * MS, 0, 8)]),
            [(8, 5 * MS, Kind::Kernel)]
        );
        event.waits.as_mut().unwrap().woken = false;
        assert_eq!(
            waits(&[event, switch(5 * MS, 0, 8)]),
            [(8, 5 * MS, Kind::Other)]
        );
    }

    #[test]
    fn time_that_real_time_tasks_take_on_all_cpus_does_not_count() {
        let events = [
            real_time(0, 0, 90),
            real_time(MS, 1, 91),
            woken(2 * MS, 8, BOTH),
            switch(5 * MS, 0, 7),
            switch(6 * MS, 1, 0),
            switch(9 * MS, 0, 8),
        ];
        assert_eq!(waits(&events), [(8, 4 * MS, Kind::Other)]);
        let became = [
            switch(0, 0, 7),
            woken(MS, 8, [1, 0, 0, 0]),
            real_time(3 * MS, 0, 7),
            switch(8 * MS, 0, 7),
            switch(9 * MS, 0, 8),
        ];
        assert_eq!(waits(&became), [(8, 3 * MS, Kind::Other)]);
        let confined = [
            real_time(0, 0, 90),
            switch(MS, 1, 7),
            woken(2 * MS, 8, [1, 0, 0, 0]),
            switch(9 * MS, 1, 0),
        ];
        assert_eq!(waits(&confined), []);
    }

    #[test]
    fn softirqs_on_all_of_its_cpus_do_not_count() {
        let softirq = |at_ns, cpu, length_ns| Event {
            at_ns,
            softirq: Some((cpu, length_ns)),
            ..Event::default()
        };
        let events = |cpus| {
            [
                switch(0, 0, 7),
                switch(0, 1, 9),
                woken(2 * MS, 8, cpus),
                softirq(12 * MS, 0, 11 * MS),
                softirq(12 * MS, 1, 3 * MS),
                switch(13 * MS, 0, 8),
            ]
        };
        assert_eq!(waits(&events(BOTH)), [(8, 8 * MS, Kind::Other)]);
        assert_eq!(
            waits(&events([1, 0, 0, 0])),
            [(8, MS, Kind::Other)],
            "from 2 to 12 ms the only CPU had a softirq"
        );
    }

    #[test]
    fn the_threads_that_had_the_cpu_are_named() {
        let mut events = vec![
            woken(0, 7, BOTH),
            switch(0, 0, 7),
            switch(0, 1, 9),
            woken(MS, 8, BOTH),
            switch(3 * MS, 0, 0),
            switch(4 * MS, 0, 7),
            switch(9 * MS, 0, 8),
        ];
        let mut seen = Waits::default();
        events
            .drain(..)
            .for_each(|event| seen.add(&event, event.at_ns));
        let runner = |thread, name: &str, length_ns| Runner {
            thread,
            name: name.into(),
            length_ns,
        };
        let behind = [runner(7, "t", 7 * MS), runner(0, "", MS)];
        assert_eq!(seen.finish(9 * MS)[0].behind, behind);
    }

    #[test]
    fn other_cpus_do_not_end_a_wait_and_no_cpus_do() {
        let events = [
            switch(0, 0, 7),
            woken(0, 8, BOTH),
            woken(2 * MS, 8, [1, 0, 0, 0]),
            woken(5 * MS, 8, Cpus::default()),
            switch(9 * MS, 0, 8),
        ];
        assert_eq!(waits(&events), [(8, 5 * MS, Kind::Other)]);
    }
}
