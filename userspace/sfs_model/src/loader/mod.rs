//! The loader: a task of the machine that reads what the kernel half reports, and answers. It
//! follows `userspace/scx_sfs/src/control/mod.rs`; the decisions are those of `sfs_policy`.
//!
//! Its work is a row of steps, each of which needs CPU time, so it may lose its CPU between
//! reading an event and acting on it. A seed has it killed, or lets it sleep without an answer.

mod answers;
pub mod checks;
mod learning;
pub mod plan;

use crate::machine::hints::apply_hints;
use checks::Watch;
use learning::{Learning, REFRESH_NS};
use plan::Plan;
use rand_chacha::ChaCha8Rng;
use sfs_kernel_model::loader_ffi::{self as ffi, Completion};
use sfs_kernel_model::race;
use sfs_kernel_model::reader::{Nudge, Reader};
use sfs_kernel_model::sched::wake_up;
use sfs_kernel_model::state::{with, CpuId, Event, Place, State, TaskId};
use sfs_kernel_model::workload::{exponential, Behaviour};
use sfs_kernel_objects::ringbuf::Ring;
use sfs_policy::{defaults, Config, Controller, Mode};
use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{c_void, CStr, CString};

/// Bytes of the kernel half's ring buffers: events, completions.
const RINGS: [usize; 2] = [64 * 1024, 256 * 1024];

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It needs so much CPU time, in ns, for the next one.
    Runs(u64),
    /// It leaves the CPU.
    Sleeps,
    /// The process is gone, and with it the scheduler.
    Unloads,
}

/// Why the loader sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// In poll(), until something happens.
    Poll,
    /// Without being able to wake up, for example for a page on a slow disk.
    Disk,
}

#[derive(Debug)]
enum Step {
    Learn(Vec<Completion>),
    Event(ffi::Event),
    Switch(Mode),
    Hints,
}

/// What the loader has written into the kernel half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    mode: Mode,
    slice_ns: u64,
    overload_wait_ns: u64,
    recover_wait_ns: u64,
}

/// The loader of a machine.
#[derive(Debug)]
pub struct Loader {
    /// Its task.
    pub task: TaskId,
    plan: Plan,
    maps: ffi::Maps,
    rings: [Ring; 2],
    /// The ring buffer is on epoll's list of those that may have something to read.
    listed: [bool; 2],
    controller: Controller,
    learning: Option<Learning>,
    steps: VecDeque<Step>,
    sleep: Sleep,
    /// Counts sleeps, so that late ends are recognised.
    sleeps: u64,
    is_asked: bool,
    is_hinted: bool,
    taken_at: u64,
    arrivals_read: u64,
    stalled_until: u64,
    is_killed: bool,
    is_gone: bool,
    random: ChaCha8Rng,
    told: Told,
    watch: Watch,
    done: Done,
}

/// How often the loader has done what no counter of the controller has.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    reads: u64,
    dismissed: u64,
}

/// The loader of a machine; `None`: S is fixed, and nobody answers the kernel half.
fn of(s: &State) -> Option<&Loader> {
    let reader: &dyn Any = s.reader.as_deref()?;
    reader.downcast_ref()
}

/// The same of a machine that has one.
fn own(s: &mut State) -> &mut Loader {
    let reader: &mut dyn Any = s.reader.as_deref_mut().expect("there is a loader");
    reader.downcast_mut().expect("the reader is the loader")
}

impl Reader for Loader {
    fn task(&self) -> TaskId {
        self.task
    }

    fn ring(&mut self, map: *const c_void) -> Option<(usize, &mut Ring)> {
        let maps = [self.maps.events, self.maps.completions];
        let number = maps.iter().position(|&other| other == map)?;
        Some((number, &mut self.rings[number]))
    }

    fn falls_asleep(&mut self, now: u64) -> (u64, Option<u64>) {
        self.sleeps += 1;
        let is_ready = self.is_ready(now);
        let lasts = match self.sleep {
            Sleep::Disk => Some(self.stalled_until.saturating_sub(now)),
            // Something has come in the middle of the switch.
            Sleep::Poll if is_ready => Some(0),
            Sleep::Poll => self.learn_in(now).map(rounded_up),
        };
        (self.sleeps, lasts)
    }
}

/// Starts the loader as `task`; before the kernel half is loaded.
pub fn start(task: TaskId, pid: i32, plan: Plan, random: ChaCha8Rng) {
    let tunables = ffi::Tunables {
        tgid: pid,
        iat_window: plan.window.get() as u32,
        overload: u32::from(plan.overload.is_some()),
    };
    // SAFETY: `tunables` lives during the call.
    unsafe { ffi::model_tune_loader(&tunables) };
    with(|s| {
        let controller = Controller::new(Config {
            window: plan.window,
            slice: plan.slice,
            initial_slice_ns: defaults::INITIAL_SLICE_NS,
            overload: plan.overload,
            cpus: s.cpus.len() as u32,
        });
        for (at, nudge) in misfortunes(&plan) {
            s.after(at, Event::Reader(nudge));
        }
        s.after(1_000_000, Event::Reader(Nudge::SleepOver(0)));
        let told = told(&plan, Mode::Filter, controller.slice_ns());
        let mut loader = Loader {
            task,
            maps: ffi::maps(),
            rings: RINGS.map(Ring::new),
            listed: [false; 2],
            controller,
            learning: plan.learns.map(|learns| Learning::new(learns, s.now)),
            steps: VecDeque::new(),
            sleep: Sleep::Poll,
            sleeps: 0,
            is_asked: false,
            is_hinted: false,
            taken_at: s.now,
            arrivals_read: 0,
            stalled_until: 0,
            is_killed: false,
            is_gone: false,
            random,
            told,
            watch: Watch::new(s.cpus.len(), s.now),
            done: Done::default(),
            plan,
        };
        loader.set_slice(s.now, told.slice_ns);
        let learns = loader.learning.is_some();
        s.reader = Some(Box::new(loader));
        // `Control::start()` hands over the first tables before it attaches.
        if learns {
            answers::learn(s, &[]);
        }
    });
}

/// What happens to the loader, and when, in ns after load.
fn misfortunes(plan: &Plan) -> Vec<(u64, Nudge)> {
    let stall = plan.stalls.map(|(at, ns)| (at, Nudge::Stall(ns)));
    let death = plan.dies_ns.map(|at| (at, Nudge::Kill));
    let reader = (plan.readers_ns > 0).then_some((plan.readers_ns, Nudge::Asked));
    stall.into_iter().chain(death).chain(reader).collect()
}

/// `Settings::slice_of()` of the loader.
fn told(plan: &Plan, mode: Mode, slice_ns: u64) -> Told {
    Told {
        mode,
        slice_ns,
        overload_wait_ns: plan.overload.map_or(u64::MAX, |o| o.enter_ns(slice_ns)),
        recover_wait_ns: plan.overload.map_or(0, |o| o.exit_ns(slice_ns)),
    }
}

/// Something reaches the loader.
pub fn nudged(nudge: Nudge) {
    let task = with(|s| of(s).map(|loader| loader.task));
    let _waking = task.map(race::wakes);
    let woken = with(|s| {
        let now = s.now;
        let task = of(s)?.task;
        let sleeps = s.tasks[task].place == Place::Asleep;
        let loader = own(s);
        let wakes = loader.notes(nudge, now) && sleeps;
        if nudge == Nudge::Asked {
            let delay = exponential(&mut loader.random, loader.plan.readers_ns);
            s.after(delay, Event::Reader(Nudge::Asked));
        }
        if !wakes {
            return None;
        }
        let cpu = match nudge {
            Nudge::Ring(_, cpu) => cpu,
            _ => s.tasks[task].cpu,
        };
        s.tasks[task].left_ns = own(s).work_ns();
        Some((race::place(s, cpu), task))
    });
    if let Some((cpu, task)) = woken {
        wake_up(cpu, task, false);
    }
}

/// `Control::wait()` of the loader: poll() takes whole ms.
fn rounded_up(ns: u64) -> u64 {
    (ns + 999_000) / 1_000_000 * 1_000_000
}

/// Whether the machine has a loader.
pub fn is_there() -> bool {
    with(|s| of(s).is_some())
}

/// The scheduler is unloaded, because the loader is gone.
pub fn is_gone(s: &State) -> bool {
    of(s).is_some_and(|loader| loader.is_gone)
}

/// What the loader has done so far, in a line.
pub fn summary(s: &State) -> Option<String> {
    let loader = of(s)?;
    let counters = loader.controller.counters();
    Some(format!(
        "loader: {} reads, {} arrivals, S computed {} times and {} us at the end, fair-only mode \
         entered {} times and left {} times, {} reports dismissed, late for {} ms, {} records lost, {}",
        loader.done.reads,
        counters.arrivals,
        counters.recomputations,
        counters.slice_ns / 1_000,
        counters.fair_only_entered,
        counters.fair_only_left,
        loader.done.dismissed,
        loader.watch.late_ns / 1_000_000,
        loader.rings[0].lost() + loader.rings[1].lost(),
        match (loader.is_gone, loader.is_in_force()) {
            (true, _) => "killed",
            (false, true) => "ranks in force",
            (false, false) => "no ranks",
        }
    ))
}

/// The loader has had the CPU time for a step, on `cpu`.
pub fn step(cpu: CpuId) -> Next {
    let step = with(|s| {
        let now = s.now;
        let loader = own(s);
        if loader.is_killed {
            loader.is_gone = true;
            return Err(Next::Unloads);
        }
        if now < loader.stalled_until {
            loader.sleep = Sleep::Disk;
            return Err(Next::Sleeps);
        }
        Ok(loader.steps.pop_front())
    });
    match step {
        Err(next) => return next,
        Ok(None) => with(answers::look),
        Ok(Some(Step::Learn(completions))) => with(|s| answers::learn(s, &completions)),
        Ok(Some(Step::Event(event))) => with(|s| answers::take(s, event)),
        Ok(Some(Step::Switch(mode))) => answers::switch(cpu, mode),
        Ok(Some(Step::Hints)) => apply_hints(cpu),
    }
    with(|s| {
        let now = s.now;
        let loader = own(s);
        if !loader.steps.is_empty() || loader.is_ready(now) {
            return Next::Runs(loader.work_ns());
        }
        loader.sleep = Sleep::Poll;
        Next::Sleeps
    })
}

/// Gives a function that arrives its name, by which the kernel half tells functions apart: those
/// that need about as much CPU time are invocations of one function. An invocation of a replay has
/// its name already.
pub fn name_function(task: TaskId, behaviour: Behaviour) {
    let Behaviour::Function { turns, runs_us } = behaviour else {
        return;
    };
    let name = format!("function-{}", (turns * runs_us).max(1).ilog2() / 2);
    name_task(task, &CString::new(name).expect("a name without zeros"));
}

/// Gives a task the name of its program.
pub fn name_task(task: TaskId, name: &CStr) {
    let pointer = with(|s| s.tasks[task].fields.task);
    // SAFETY: the task is one of the machine's, and `name` lives during the call.
    unsafe { ffi::model_name_task(pointer, name.as_ptr()) };
}

impl Loader {
    fn is_in_force(&self) -> bool {
        self.learning.as_ref().is_some_and(Learning::is_in_force)
    }

    fn work_ns(&mut self) -> u64 {
        let refreshes = matches!(self.steps.front(), Some(Step::Learn(_)));
        let refresh = if refreshes { REFRESH_NS } else { 0 };
        exponential(&mut self.random, self.plan.work_us * 1_000) + refresh
    }

    /// Notes what has happened. Returns true if it wakes the loader up.
    fn notes(&mut self, nudge: Nudge, now: u64) -> bool {
        match nudge {
            // ep_poll_callback().
            Nudge::Ring(number, _) => self.listed[number] = true,
            Nudge::SleepOver(number) => return number == self.sleeps,
            Nudge::Asked => self.is_asked = true,
            Nudge::Hinted => self.is_hinted = true,
            Nudge::Stall(ns) => {
                self.stalled_until = now + ns;
                return false;
            }
            Nudge::Kill => self.is_killed = true,
        }
        self.sleep == Sleep::Poll
    }

    /// ep_item_poll(): a listed ring buffer with nothing to read goes off the list.
    fn has_events(&mut self) -> bool {
        for (listed, ring) in self.listed.iter_mut().zip(&self.rings) {
            *listed &= ring.unread() > 0;
        }
        self.listed.contains(&true)
    }

    /// poll() returns at once.
    fn is_ready(&mut self, now: u64) -> bool {
        self.has_events()
            || self.is_asked
            || self.is_hinted
            || self.learn_in(now).is_some_and(|ns| rounded_up(ns) == 0)
    }

    /// `Control::learn_in()`, ns.
    fn learn_in(&self, now: u64) -> Option<u64> {
        let learning = self.learning.as_ref()?;
        let left = (self.taken_at + defaults::LEARN_AFTER.as_nanos() as u64).saturating_sub(now);
        Some(learning.due_in(now).map_or(left, |due| due.min(left)))
    }

    /// `KernelHalf::set_slice()`.
    fn set_slice(&mut self, now: u64, slice_ns: u64) {
        self.told = told(&self.plan, self.told.mode, slice_ns);
        self.watch.slice_set_at = now;
        let told = self.told;
        // SAFETY: writes three numbers of the kernel half.
        unsafe { ffi::model_set_slice(told.slice_ns, told.overload_wait_ns, told.recover_wait_ns) };
    }
}
