//! The state machine: scheduling events in, invocations with their segments out. It does no I/O.

mod unit;
mod work;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use unit::Unit;

use crate::cpus::Cpus;
use crate::event::{Event, Left, Task, What};
use crate::invocation::Invocation;
use crate::kind::{Kind, Place, Queue, Turn};
use crate::roster::{Class, Roster, Who};

/// A stay of a runner on a CPU. Times in ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The CPU.
    pub cpu: usize,
    /// Its start.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Number of the runner in the roster.
    pub who: u32,
    /// The invocation; 0: none.
    pub serial: u64,
    /// The thread; 0: the CPU idles.
    pub pid: i32,
    /// The kind of turn.
    pub turn: Turn,
}

/// What comes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A stay on a CPU has ended.
    Run(Run),
    /// An invocation has ended.
    Ended(Box<Invocation>),
}

/// Returns whether processes in the cgroup with this id are invocations.
pub type Wanted = Box<dyn Fn(u64) -> bool>;

/// What tells invocations.
pub enum Source {
    /// scx_sfs: each event has what it knows.
    Scheduler,
    /// Nothing: an invocation is the life of a process, if it is wanted.
    Processes(Wanted),
}

#[derive(Debug, Default)]
struct Cpu {
    /// Who runs; None: not known yet.
    runs: Option<Run>,
    /// Tasks that a real-time task has displaced, and that still wait.
    displaced: Vec<i32>,
}

#[derive(Debug, Default)]
struct TaskState {
    unit: Option<u64>,
    kind: Option<Kind>,
    waits_in: Option<Place>,
    displaced_on: Option<usize>,
    cpus: Option<Box<Cpus>>,
    /// Who it was last, with its number in the roster.
    who: Option<(Who, u32)>,
}

/// The state machine.
pub struct Account {
    source: Source,
    from: u64,
    now: u64,
    all: Cpus,
    real_time: Cpus,
    cpus: Vec<Cpu>,
    tasks: FxHashMap<i32, TaskState>,
    waiters: BTreeSet<i32>,
    units: FxHashMap<u64, Unit>,
    roster: Roster,
    room: usize,
    last_serial: u64,
    out: Vec<Output>,
}

impl Account {
    /// Returns an account for a machine with `cpus` CPUs that begins at `from`. It keeps at most
    /// `room` segments of invocations that have not been taken out of it.
    pub fn new(source: Source, cpus: usize, from: u64, room: usize) -> Self {
        Self {
            source,
            from,
            now: from,
            all: Cpus::first(cpus),
            real_time: Cpus::default(),
            cpus: Vec::new(),
            tasks: FxHashMap::default(),
            waiters: BTreeSet::new(),
            units: FxHashMap::default(),
            roster: Roster::default(),
            room,
            last_serial: 0,
            out: Vec::new(),
        }
    }

    /// Returns all runners seen.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns the number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.all.count()
    }

    /// Returns the time of the last event, or the start.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the stays on CPUs that have not ended, up to now.
    pub fn running(&self) -> impl Iterator<Item = Run> + '_ {
        let runs = self.cpus.iter().filter_map(|cpu| cpu.runs);
        runs.map(|run| Run {
            to: self.now,
            ..run
        })
    }

    /// Returns the number of segments for which there is room.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Takes what has come out since the last call. The segments of these invocations no longer
    /// take room.
    pub fn take(&mut self) -> Vec<Output> {
        let out = std::mem::take(&mut self.out);
        for output in &out {
            if let Output::Ended(invocation) = output {
                self.room += invocation.segments.len();
            }
        }
        out
    }

    /// Processes `event`. Events must be ordered by time; a late one counts at the time of the
    /// previous one.
    pub fn add(&mut self, event: &Event) {
        self.now = self.now.max(event.at_ns);
        match event.what {
            What::Switch {
                cpu,
                prev,
                left,
                next,
            } => self.switch(cpu, &prev, left, &next),
            What::Wake { task, new } => self.wake(&task, new),
            What::Moved(task) => self.moved(&task),
            What::Look(cpu, task) => self.look(cpu, &task),
            What::Confined(pid, cpus) => {
                self.tasks.entry(pid).or_default().cpus = Some(Box::new(cpus));
            }
        }
    }

    /// The watch is over: all invocations in progress come out unfinished.
    pub fn finish(&mut self, now: u64) {
        self.now = self.now.max(now);
        for cpu in 0..self.cpus.len() {
            self.end_run(cpu);
        }
        let mut cut: Vec<_> = (self.units.values_mut())
            .filter_map(|unit| unit.cut(self.now, &mut self.room))
            .collect();
        cut.sort_by_key(|invocation| invocation.serial);
        self.out.extend(cut.into_iter().map(Output::Ended));
    }

    // ---------------------------------------------------------------- events

    fn switch(&mut self, cpu: usize, prev: &Task, left: Left, next: &Task) {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, Cpu::default);
        }
        let before = self.end_run(cpu);
        // After a loss of events the task that leaves is not the one that came.
        if before != 0 && before != prev.pid {
            self.set_kind(before, Kind::Unseen);
        }
        if prev.pid != 0 {
            self.note(prev);
            match left {
                Left::Dead => self.leave(prev),
                Left::Asleep { io: true } => self.set_kind(prev.pid, Kind::BlockedIo),
                Left::Asleep { io: false } => self.set_kind(prev.pid, Kind::Blocked),
                Left::Runnable => {
                    let displaced = next.real_time && !prev.real_time;
                    self.wait(prev, displaced.then_some(cpu));
                }
            }
        }
        self.note_class(cpu, next.real_time);
        self.begin_run(cpu, next);
    }

    fn wake(&mut self, task: &Task, new: bool) {
        if new && task.pid == task.tgid {
            // Another process had this id, and its end was not seen.
            self.end(task.tgid as u64, self.now);
            self.units.remove(&(task.tgid as u64));
            self.tasks.remove(&task.pid);
            let unit = self.unit_of(task);
            if let Some(unit) = unit {
                let fresh = || Unit::new(self.now);
                self.units.entry(unit).or_insert_with(fresh).born = true;
            }
        }
        let is_running = |state: &TaskState| matches!(state.kind, Some(Kind::Running(_)));
        if self.tasks.get(&task.pid).is_some_and(is_running) {
            return; // it was about to sleep
        }
        self.note(task);
        self.wait(task, None);
    }

    fn moved(&mut self, task: &Task) {
        if !self.waiters.contains(&task.pid) {
            return;
        }
        let place = task.place.unwrap_or(Place::of_turn(task.turn));
        if let Some(state) = self.tasks.get_mut(&task.pid) {
            state.waits_in = Some(place);
        }
        self.set_waiting_kind(task.pid);
    }

    fn look(&mut self, cpu: usize, task: &Task) {
        let runs = self.cpus.get(cpu).and_then(|cpu| cpu.runs);
        if runs.is_none_or(|run| run.pid != task.pid) {
            return;
        }
        self.end_run(cpu);
        self.note_class(cpu, task.real_time);
        self.begin_run(cpu, task);
    }

    // ----------------------------------------------------------------- tasks

    /// `task` runs on `cpu` from now on.
    fn begin_run(&mut self, cpu: usize, task: &Task) {
        let who;
        let mut serial = 0;
        let turn = if task.real_time {
            Turn::RealTime
        } else {
            task.turn
        };
        if task.pid != 0 {
            self.note(task);
            self.set_kind(task.pid, Kind::Running(turn));
            let unit = self.tasks.get(&task.pid).and_then(|state| state.unit);
            let unit = unit.and_then(|unit| self.units.get(&unit));
            let live = unit.and_then(|unit| unit.live.as_ref());
            serial = live.map_or(0, |live| live.serial);
            who = self.number(task, serial != 0);
        } else {
            who = self.roster.number(Who::IDLE);
        }
        self.cpus[cpu].runs = Some(Run {
            cpu,
            from: self.now,
            to: self.now,
            who,
            serial,
            pid: task.pid,
            turn,
        });
    }

    /// Returns the number of who `task` is; `serves`: it serves an invocation.
    fn number(&mut self, task: &Task, serves: bool) -> u32 {
        let who = who_is(task, serves);
        let state = self.tasks.entry(task.pid).or_default();
        match state.who {
            Some((known, number)) if known == who => number,
            _ => {
                let number = self.roster.number(who);
                state.who = Some((who, number));
                number
            }
        }
    }

    /// Ends the stay of who runs on `cpu`. Returns the thread, or 0.
    fn end_run(&mut self, cpu: usize) -> i32 {
        let Some(run) = self.cpus[cpu].runs.take() else {
            return 0;
        };
        if run.from < self.now {
            let to = self.now;
            self.out.push(Output::Run(Run { to, ..run }));
        }
        run.pid
    }

    /// `task` waits from now on; `displaced_on`: a real-time task has taken this CPU from it.
    fn wait(&mut self, task: &Task, displaced_on: Option<usize>) {
        let state = self.tasks.entry(task.pid).or_default();
        if !task.confined {
            state.cpus = None;
        }
        let by_turn = Place::of_turn(task.turn);
        // What it is displaced to is not its CPU's own queue for long.
        let local = task.place == Some(Place::Queue(Queue::Local));
        state.waits_in = match task.place {
            Some(place) if !(local && displaced_on.is_some()) => Some(place),
            _ => Some(by_turn),
        };
        state.displaced_on = displaced_on;
        if let Some(cpu) = displaced_on {
            self.cpus[cpu].displaced.push(task.pid);
        }
        let cpus = state.cpus.clone();
        if let Some(live) = self.live_of(task.pid) {
            live.cpus = cpus;
            if let Some(Place::Parked(group)) = task.place {
                live.parked_by = group;
            }
        }
        self.set_waiting_kind(task.pid);
    }

    fn set_waiting_kind(&mut self, pid: i32) {
        let Some(state) = self.tasks.get(&pid) else {
            return;
        };
        let Some(place) = state.waits_in else {
            return;
        };
        let allowed = state.cpus.as_deref().unwrap_or(&self.all);
        let kind = match place {
            Place::Parked(_) => Kind::Parked,
            Place::Queue(_) if state.displaced_on.is_some() => Kind::Displaced,
            Place::Queue(_) if allowed.is_within(&self.real_time) => Kind::Displaced,
            Place::Queue(queue) => Kind::Queued(queue),
        };
        self.set_kind(pid, kind);
    }

    fn set_kind(&mut self, pid: i32, kind: Kind) {
        let state = self.tasks.entry(pid).or_default();
        let old = state.kind.replace(kind);
        if matches!(kind, Kind::Queued(_) | Kind::Displaced | Kind::Parked) {
            self.waiters.insert(pid);
        } else {
            state.waits_in = None;
            state.displaced_on = None;
            self.waiters.remove(&pid);
        }
        if let Some(unit) = state.unit.and_then(|unit| self.units.get_mut(&unit)) {
            unit.change(old, Some(kind), self.now, &mut self.room);
        }
    }

    /// `task` has exited.
    fn leave(&mut self, task: &Task) {
        self.waiters.remove(&task.pid);
        let Some(state) = self.tasks.remove(&task.pid) else {
            return;
        };
        let Some(id) = state.unit else {
            return;
        };
        let Some(unit) = self.units.get_mut(&id) else {
            return;
        };
        unit.change(state.kind, None, self.now, &mut self.room);
        if unit.tasks() == 0 && task.last {
            self.end(id, self.now);
        }
        let unit = self.units.get(&id);
        if unit.is_some_and(|unit| unit.tasks() == 0 && unit.live.is_none()) {
            self.units.remove(&id);
        }
    }

    /// A CPU has begun or ceased to run a real-time task.
    fn note_class(&mut self, cpu: usize, real_time: bool) {
        if self.real_time.contains(cpu) == real_time {
            return;
        }
        let had_all = self.all.is_within(&self.real_time);
        let mut concerned = Vec::new();
        if real_time {
            self.real_time.insert(cpu);
        } else {
            self.real_time.remove(cpu);
            concerned = std::mem::take(&mut self.cpus[cpu].displaced);
            for pid in &concerned {
                match self.tasks.get_mut(pid) {
                    Some(state) if state.displaced_on == Some(cpu) => state.displaced_on = None,
                    _ => {}
                }
            }
        }
        let all_change = had_all != self.all.is_within(&self.real_time);
        let tasks = &self.tasks;
        let is_concerned = |pid: &&i32| {
            let confined = || tasks.get(*pid).is_some_and(|state| state.cpus.is_some());
            all_change || confined()
        };
        concerned.extend(self.waiters.iter().filter(is_concerned));
        for pid in concerned {
            if self.waiters.contains(&pid) {
                self.set_waiting_kind(pid);
            }
        }
    }
}

/// Returns who `task` is; `serves`: it serves an invocation.
fn who_is(task: &Task, serves: bool) -> Who {
    let (function, sandbox) = task
        .work
        .map_or((0, 0), |work| (work.function, work.sandbox));
    let class = match task {
        Task {
            real_time: true, ..
        } => Class::RealTime,
        Task { kernel: true, .. } => Class::Kernel,
        _ if serves => Class::Function,
        _ => Class::Outside,
    };
    Who {
        class,
        function: if class == Class::Function {
            function
        } else {
            0
        },
        group: if sandbox == 0 { task.cgroup } else { sandbox },
        comm: task.comm,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
