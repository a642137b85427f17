//! How a seed is run, and tasks that start: residents, the loader, functions.

use super::{Machine, CHECK_NS};
use crate::limits::Limits;
use crate::loader::{self, plan::Plan};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sfs_kernel_model::ffi;
use sfs_kernel_model::group_events;
use sfs_kernel_model::groups::{GroupId, ROOT};
use sfs_kernel_model::higher;
use sfs_kernel_model::life;
use sfs_kernel_model::oddities::Oddities;
use sfs_kernel_model::race;
use sfs_kernel_model::sched::wake_up;
use sfs_kernel_model::state::{with, CpuId, Event, Faults, Place, TaskId, FIRST_PID};
use sfs_kernel_model::tasks::{init_task, new_fields, push_task, KERNEL_THREAD};
use sfs_kernel_model::timeline::Entry;
use sfs_kernel_model::workload::{between, Behaviour};
use std::time::Duration;

/// Random numbers of arrivals, of changes, of the loader (two streams), of real-time tasks, of
/// pauses (two streams), of oddities, of hints, of bypasses, of the kernel, of each resident.
pub(super) const ARRIVALS_STREAM: u64 = 1;
pub(super) const CHANGES_STREAM: u64 = 2;
pub(super) const LOADER_STREAM: u64 = 3;
pub(super) const REAL_TIME_STREAM: u64 = 5;
pub(super) const RACES_STREAM: u64 = 6;
pub(super) const ODDITIES_STREAM: u64 = 8;
pub(super) const HINTS_STREAM: u64 = 9;
pub(super) const BYPASS_STREAM: u64 = 10;
pub(super) const KERNEL_STREAM: u64 = 11;
pub(super) const RESIDENT_STREAMS: u64 = 1_000;

/// More findings than these end a run, unless somebody wants more.
pub const MOST_FINDINGS: usize = 20;

/// How a seed is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What goes wrong on its machine.
    pub faults: Faults,
    /// What is left of it.
    pub limits: Limits,
    /// The timeline is recorded.
    pub recorded: bool,
    /// It has these oddities; `None`: those that the seed draws.
    pub oddities: Option<Oddities>,
    /// Transfers of cache lines are counted.
    pub counts_lines: bool,
    /// The kernel half is compared with the rules at each callback.
    pub watched: bool,
    /// The run ends with more findings than these.
    pub most_findings: usize,
    /// It is given up after so much real time; `None`: never.
    pub longest: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            faults: Faults::default(),
            limits: Limits::default(),
            recorded: false,
            oddities: None,
            counts_lines: false,
            watched: true,
            most_findings: MOST_FINDINGS,
            longest: None,
        }
    }
}

/// Random numbers of one kind of a seed's events: without another kind they are the same.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}

impl Machine {
    /// Loads the scheduler, as scx_enable() does.
    pub(super) fn load(&mut self) {
        let plan = self.loader_plan();
        if plan.is_some() {
            // The checks of the loader compare times of the kernel half with the machine's.
            with(|s| s.groups.load.drift_ppm = 0);
        }
        let residents = self.workload.residents.clone();
        for (number, &(behaviour, is_kernel_thread)) in (0..).zip(&residents) {
            let random = stream(self.seed, RESIDENT_STREAMS + number);
            let task = self.add_task(behaviour, is_kernel_thread, random);
            if !self.limits.has_resident(number) {
                // Its number stays, or the others would not find each other.
                with(|s| s.forget(task));
                self.left_out += 1;
            }
        }
        let loader = plan.map(|plan| self.start_loader(plan));
        // SAFETY: the machine is there.
        let err = unsafe { ffi::sfs_init() };
        assert_eq!(err, 0, "the scheduler does not load");
        group_events::load();
        for cpu in 0..self.workload.cpus {
            // SAFETY: takes plain values.
            unsafe { ffi::model_set_idle(cpu as u32, true) };
        }
        for (task, &(behaviour, is_kernel)) in residents.iter().enumerate() {
            self.start_resident(task, behaviour, is_kernel);
        }
        if let Some(task) = loader {
            init_task(task, false);
            with(|s| s.tasks[task].promise.is_outside = true);
        }
        if let Some(kind) = self.workload.real_time {
            higher::add(kind);
        }
        let is_replay = self.start_replay();
        with(|s| {
            let together = between(&mut s.random, 0, self.workload.tick_ns);
            for cpu in 0..s.cpus.len() {
                let phase = between(&mut s.random, 0, self.workload.tick_ns);
                // tick_setup_sched_timer() without skew_tick.
                s.after(if is_replay { together } else { phase }, Event::Tick(cpu));
            }
            if !is_replay {
                s.after(1_000_000, Event::Arrival);
            }
            s.after(CHECK_NS, Event::Check);
            if self.workload.changes_ns > 0 {
                s.after(self.workload.changes_ns, Event::Change);
            }
            if s.odd.of.hints_ns > 0 {
                s.after(s.odd.of.hints_ns, Event::Hint);
            }
            s.odd.is_loaded = true;
        });
        self.plan_bypass();
    }

    /// A resident is there, and wakes up soon if it does so by itself.
    fn start_resident(&self, task: TaskId, behaviour: Behaviour, is_kernel: bool) {
        if with(|s| s.tasks[task].place == Place::Dead) {
            return;
        }
        let (is_forked, starts) = behaviour.begins();
        init_task(task, is_forked);
        with(|s| {
            let delay = between(s.own_random(task), 0, 5_000_000);
            s.tasks[task].life.is_new = is_forked;
            s.tasks[task].promise.is_outside = is_kernel || !is_forked;
            s.tasks[task].promise.is_kernel = is_kernel;
            if starts {
                s.after(delay, Event::Wake(task));
            }
        });
    }

    /// Makes a task with random numbers of its own.
    fn add_task(
        &self,
        behaviour: Behaviour,
        is_kernel_thread: bool,
        mut own: ChaCha8Rng,
    ) -> TaskId {
        let place = self.draw_place(&mut own);
        place_task(behaviour, is_kernel_thread, Some(own), place)
    }

    /// The CPU of a new task, and whether it may run there only.
    fn draw_place(&self, random: &mut ChaCha8Rng) -> (CpuId, bool) {
        let cpu = between(random, 0, self.workload.cpus as u64 - 1) as usize;
        (cpu, between(random, 1, self.workload.pinned_of) == 1)
    }

    /// The loader, if the seed has one. Its random numbers are its own.
    fn loader_plan(&self) -> Option<(Plan, ChaCha8Rng)> {
        if self.workload.groups.is_steady {
            return None;
        }
        let mut random = stream(self.seed, LOADER_STREAM);
        if let Some(replayer) = &self.replayer {
            return Some((replayer.loader(), random));
        }
        let plan = Plan::draw(&mut random, self.workload.policy, self.workload.slice_ns)?;
        Some((self.limits.apply_to_loader(plan)?, random))
    }

    /// Starts the loader, in the root.
    fn start_loader(&mut self, (plan, random): (Plan, ChaCha8Rng)) -> TaskId {
        let placement = stream(self.seed, LOADER_STREAM + 1);
        with(|s| s.groups.birthplace = Some(ROOT));
        let task = self.add_task(Behaviour::Loader, false, placement);
        loader::start(task, FIRST_PID + task as i32, plan, random);
        task
    }

    /// A process is forked.
    pub(super) fn arrive(&mut self, event: Event) {
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
        let place = self.place_of_arrival();
        race::happens(event, Some(cpu), move || fork(behaviour, cpu, None, place));
    }

    /// A hog is forked in a group.
    pub(super) fn born(&mut self, event: Event, group: GroupId) {
        let last = self.workload.cpus as u64 - 1;
        let cpu = with(|s| {
            s.here = between(&mut s.random, 0, last) as usize;
            s.here
        });
        let place = self.place_of_arrival();
        race::happens(event, Some(cpu), move || {
            fork(Behaviour::Hog, cpu, Some(group), place);
        });
    }

    pub(super) fn place_of_arrival(&mut self) -> (CpuId, bool) {
        let mut random = self.arrivals.clone();
        let place = self.draw_place(&mut random);
        self.arrivals = random;
        place
    }
}

/// Makes a task; with random numbers of its own, or with those of the machine.
pub(super) fn place_task(
    behaviour: Behaviour,
    is_kernel_thread: bool,
    own: Option<ChaCha8Rng>,
    (cpu, is_pinned): (CpuId, bool),
) -> TaskId {
    with(|s| {
        let fields = new_fields(FIRST_PID + s.tasks.len() as i32, s.monotonic());
        if is_kernel_thread {
            // SAFETY: the task is new.
            unsafe { *fields.flags |= KERNEL_THREAD };
        }
        if is_pinned && s.cpus.len() > 1 {
            // SAFETY: the mask has a bit for each CPU.
            unsafe {
                (0..s.cpus.len().div_ceil(64)).for_each(|word| *fields.cpus.add(word) = 0);
                *fields.cpus.add(cpu / 64) = 1 << (cpu % 64);
                *fields.nr_cpus = 1;
            }
        }
        push_task(s, fields, behaviour, cpu, own)
    })
}

/// A process is forked on `cpu`, in a group or anywhere.
fn fork(behaviour: Behaviour, cpu: CpuId, group: Option<GroupId>, place: (CpuId, bool)) {
    with(|s| s.groups.birthplace = group);
    born_as(place_task(behaviour, false, None, place), behaviour, cpu);
}

/// A new process is there, forked on `cpu`.
pub(super) fn born_as(task: TaskId, behaviour: Behaviour, cpu: CpuId) {
    let _held = race::pi_lock(task); // nobody finds it before it is complete
    loader::name_function(task, behaviour);
    with(|s| s.tell(Entry::Arrives(task)));
    if !init_task(task, true) {
        return with(|s| s.forget(task));
    }
    with(|s| {
        s.tasks[task].life.is_unborn = true;
        life::plan(s, task);
    });
    wake_up(cpu, task, true);
}
