//! How a seed is run, and tasks that start: the loader, functions.

use super::Machine;
use crate::limits::Limits;
use crate::loader::{self, plan::Plan};
use crate::sched::wake_up;
use crate::state::{with, Event, Faults, TaskId, FIRST_PID};
use crate::timeline::Entry;
use crate::workload::{between, Behaviour};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Random numbers of arrivals, of changes, of the loader (two streams), of each resident.
pub(super) const ARRIVALS_STREAM: u64 = 1;
pub(super) const CHANGES_STREAM: u64 = 2;
pub(super) const LOADER_STREAM: u64 = 3;
pub(super) const RESIDENT_STREAMS: u64 = 1_000;

/// How a seed is run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What goes wrong on its machine.
    pub faults: Faults,
    /// What is left of it.
    pub limits: Limits,
    /// The timeline is recorded.
    pub recorded: bool,
}

/// Random numbers of one kind of a seed's events: without another kind they are the same.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}

impl Machine {
    /// Starts the loader, if the seed has one. Its random numbers are its own.
    pub(super) fn start_loader(&mut self) -> Option<TaskId> {
        let mut random = stream(self.seed, LOADER_STREAM);
        let plan = Plan::draw(&mut random, self.workload.policy, self.workload.slice_ns)?;
        let plan = self.limits.apply_to_loader(plan)?;
        let placement = stream(self.seed, LOADER_STREAM + 1);
        let task = self.add_task(Behaviour::Loader, false, Some(placement));
        loader::start(task, FIRST_PID + task as i32, plan, random);
        Some(task)
    }

    /// A process is forked.
    pub(super) fn arrive(&mut self) {
        let since_load = with(|s| s.now - s.booted_at);
        let delay = self.workload.next_arrival(&mut self.arrivals, since_load);
        let cpu = between(&mut self.arrivals, 0, self.workload.cpus as u64 - 1) as usize;
        let behaviour = self.workload.function(&mut self.arrivals);
        with(|s| {
            s.here = cpu;
            s.after(delay, Event::Arrival);
        });
        self.arrived += 1;
        if !self.limits.has_function(self.arrived - 1) {
            // Its other random numbers are drawn as well, or later functions would change.
            between(&mut self.arrivals, 0, 1);
            between(&mut self.arrivals, 0, 1);
            return;
        }
        let task = self.add_task(behaviour, false, None);
        loader::name_function(task, behaviour);
        with(|s| s.tell(Entry::Arrives(task)));
        self.init_task(task, true);
        wake_up(cpu, task, true);
    }
}
