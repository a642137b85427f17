//! Which invocation a task serves, when it begins, and when it ends.

use super::unit::Unit;
use super::{Account, Output, Source};
use crate::event::{Task, Work};
use crate::invocation::Invocation;
use crate::kind::KINDS;

impl Account {
    pub(super) fn unit_of(&self, task: &Task) -> Option<u64> {
        if task.kernel {
            return None;
        }
        match self.source {
            Source::Scheduler => task.work.map(|work| work.unit),
            Source::Processes(_) => Some(task.tgid as u64),
        }
    }

    pub(super) fn live_of(&mut self, pid: i32) -> Option<&mut Invocation> {
        let unit = self.tasks.get(&pid)?.unit?;
        self.units.get_mut(&unit)?.live.as_deref_mut()
    }

    /// Notes `task`'s unit, and whether its invocation has begun or ended.
    pub(super) fn note(&mut self, task: &Task) {
        let Some(id) = self.unit_of(task) else {
            return;
        };
        let now = self.now;
        let state = self.tasks.entry(task.pid).or_default();
        let (old, kind) = (state.unit.replace(id), state.kind);
        if old != Some(id) {
            if let Some(old) = old.and_then(|old| self.units.get_mut(&old)) {
                old.change(kind, None, now, &mut self.room);
            }
            let fresh = || Unit::new(now);
            let unit = self.units.entry(id).or_insert_with(fresh);
            unit.change(None, kind, now, &mut self.room);
        }
        self.name_live(task); // it may be its last event
        match &self.source {
            Source::Scheduler => {
                if let Some(work) = task.work {
                    self.note_work(task, &work);
                }
            }
            Source::Processes(wanted) => {
                let unit = self.units.get(&id);
                let begins = unit.is_some_and(|unit| unit.born && unit.live.is_none());
                if begins && wanted(task.cgroup) {
                    let work = Work {
                        unit: id,
                        seq: 1,
                        open: true,
                        arrived_at: now,
                        function: 0,
                        sandbox: 0,
                    };
                    self.begin(task, &work);
                }
            }
        }
        self.name_live(task);
    }

    /// The invocation that `task` serves is that of the function which `task` is now: a program may
    /// give itself another name, or become another program.
    fn name_live(&mut self, task: &Task) {
        if self.live_of(task.pid).is_none() {
            return;
        }
        let who = self.number(task, true);
        if let Some(live) = self.live_of(task.pid) {
            live.who = who;
            live.cgroup = task.cgroup;
        }
    }

    fn note_work(&mut self, task: &Task, work: &Work) {
        let Some(unit) = self.units.get_mut(&work.unit) else {
            return;
        };
        let live = unit.live.as_ref().map(|live| live.seq);
        let before = unit.last_seq.replace(work.seq);
        match live {
            Some(seq) if seq == work.seq && work.open => {
                unit.arrived_earlier(work.arrived_at, self.from, &mut self.room);
            }
            Some(seq) if seq == work.seq => self.end(work.unit, self.now),
            // The next one has begun, which ends the last one.
            Some(_) => {
                self.end(work.unit, work.arrived_at);
                self.begin(task, work);
            }
            None if work.open => self.begin(task, work),
            // It has begun and ended since the last event.
            None if before.is_some_and(|before| before != work.seq) => self.begin(task, work),
            None => {}
        }
        if !work.open {
            self.end(work.unit, self.now);
        }
    }

    fn begin(&mut self, task: &Task, work: &Work) {
        let Some(unit) = self.units.get_mut(&work.unit) else {
            return;
        };
        self.last_serial += 1;
        let fresh = Invocation {
            serial: self.last_serial,
            unit: work.unit,
            seq: work.seq,
            pid: task.tgid,
            who: 0,
            cgroup: task.cgroup,
            begin: 0,
            end: 0,
            finished: false,
            sums: [0; KINDS],
            segments: Vec::new(),
            unrecorded: 0,
            cpus: None,
            parked_by: 0,
        };
        unit.begin(fresh, work, self.from, self.now, &mut self.room);
    }

    pub(super) fn end(&mut self, unit: u64, at: u64) {
        let unit = self.units.get_mut(&unit);
        if let Some(ended) = unit.and_then(|unit| unit.end(at, self.now, &mut self.room)) {
            self.out.push(Output::Ended(ended));
        }
    }
}
