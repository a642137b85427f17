//! The model's state: tasks, CPUs, queues, maps, timers, the clock and what is to happen.

use crate::ffi::{Fields, TaskStruct};
use crate::group_events::GroupEvent;
use crate::groups::Groups;
use crate::reader::Reader;
use crate::timeline::Entry;
use rand_chacha::ChaCha8Rng;
pub use sfs_kernel_draws::faults::Faults;
use sfs_kernel_objects::dsq::Dsq;
pub use sfs_kernel_objects::dsq::Walk;
use sfs_kernel_objects::maps::Map;
pub use sfs_kernel_objects::timer::Timer;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// A task, by its place in [`State::tasks`].
pub type TaskId = usize;
/// A CPU, from 0 on.
pub type CpuId = usize;

/// The process id of the first task.
pub const FIRST_PID: i32 = 100;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It sleeps.
    Asleep,
    /// It is runnable, and on its way into a queue.
    Moving,
    /// In the queue with this number.
    Queue(u64),
    /// In the local queue of its CPU.
    Local,
    /// On its CPU.
    Running,
    /// It has ended.
    Dead,
}

/// A task.
#[derive(Debug)]
pub struct Task {
    /// Its fields in the kernel's memory.
    pub fields: Fields,
    /// Its place.
    pub place: Place,
    /// The CPU whose run queue it is, or was, on.
    pub cpu: CpuId,
    /// When it was queued: higher is later.
    pub queued_as: u64,
    /// Its place in that queue.
    pub key: sfs_kernel_objects::dsq::Key,
    /// CPU time in ns until it does the next thing.
    pub left_ns: u64,
    /// It leaves its CPU to sleep or to end.
    pub stops: bool,
    /// Since when it has waited for a CPU; `None` if it does not.
    pub waits_since: Option<u64>,
    /// Since when it may run where it may run now.
    pub allowed_since: u64,
    /// The queue that select_cpu() or enqueue() has named, with flags; `None`: none yet.
    pub direct: Option<(u64, u64)>,
    /// `p->scx.holding_cpu`: the CPU that has taken it out of a queue, and has not got it yet.
    pub holding: Option<CpuId>,
    /// How it behaves.
    pub behaviour: crate::workload::Behaviour,
    /// What it is promised.
    pub promise: crate::promises::Promise,
    /// Its relations to others.
    pub life: crate::life::Life,
    /// Random numbers of its own; `None`: it takes those of the machine.
    pub random: Option<Box<ChaCha8Rng>>,
    /// What the kernel half keeps of it.
    pub context: Option<sfs_kernel_objects::maps::Context>,
}

/// A CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    /// What runs; `None`: it idles.
    pub current: Option<TaskId>,
    /// Up to when the current task's CPU time has been counted.
    pub counted_to: u64,
    /// Its local queue.
    pub local: VecDeque<TaskId>,
    /// It has to look for another task.
    pub resched: bool,
    /// Since when the current task has it.
    pub began: u64,
    /// Since when it idles.
    pub idle_since: u64,
    /// Counts tasks that got it, so that late events are recognised.
    pub turn: u64,
    /// Tasks that dispatch() has inserted, with queue and flags.
    pub dispatched: Vec<(TaskId, u64, u64)>,
    /// In the middle of a switch: the task from which.
    pub switches_from: Option<*mut TaskStruct>,
    /// Tasks of higher classes.
    pub higher: crate::higher::Higher,
    /// The kernel serves its tasks itself ([`crate::bypass`]).
    pub is_bypassed: bool,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A CPU's tick.
    Tick(CpuId),
    /// The interrupt that makes a CPU look at its run queue.
    Resched(CpuId),
    /// A kick arrives, with its flags.
    Kick(CpuId, u64),
    /// The task in the CPU's turn with this number has had the CPU time that it wanted.
    Done(CpuId, u64),
    /// A task's sleep ends.
    Wake(TaskId),
    /// A process is started.
    Arrival,
    /// Somebody changes the nice value or the affinity of a task.
    Change,
    /// Something happens to control groups.
    Group(GroupEvent),
    /// A BPF timer, by its address, in its start with this number.
    Timer(usize, u64),
    /// A real-time task wakes up.
    RealTime,
    /// The real-time task in the CPU's turn with this number sleeps.
    RealTimeSleeps(CpuId, u64),
    /// Something reaches the loader.
    Reader(crate::reader::Nudge),
    /// The platform tells of requests.
    Hint,
    /// From now on the kernel serves the tasks of a CPU itself, or no longer.
    Bypass(CpuId, bool),
    /// The replayer has forked the invocation with this number.
    Forked(u32),
    /// The invariants are checked.
    Check,
}

/// All of it.
#[derive(Debug)]
pub struct State {
    /// ns since boot.
    pub now: u64,
    /// Tasks, also those that have ended.
    pub tasks: Vec<Task>,
    /// CPUs.
    pub cpus: Vec<Cpu>,
    /// Queues by number.
    pub queues: BTreeMap<u64, Dsq>,
    /// Control groups.
    pub groups: Groups,
    /// Maps by address.
    pub maps: BTreeMap<usize, Map>,
    /// Tasks that have not ended.
    pub live: BTreeSet<TaskId>,
    /// Timers by address.
    pub timers: BTreeMap<usize, Timer>,
    /// Walks through queues that are not over, by number.
    pub walks: BTreeMap<u64, Walk>,
    /// What is to happen, by time and order.
    pub events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Numbers events, walks and places in queues.
    pub counter: u64,
    /// The CPU on which the kernel half runs.
    pub here: CpuId,
    /// The task that select_cpu() or enqueue() is called for.
    pub directs: Option<TaskId>,
    /// dispatch() runs here.
    pub in_dispatch: bool,
    /// The task that runs on idle CPUs.
    pub swapper: *mut TaskStruct,
    /// Random numbers of this seed.
    pub random: ChaCha8Rng,
    /// Violated invariants.
    pub findings: Vec<String>,
    /// Callbacks made.
    pub callbacks: u64,
    /// Random numbers of real-time tasks.
    pub outside_random: ChaCha8Rng,
    /// What tasks are promised.
    pub promises: crate::promises::Promises,
    /// What tasks do on this machine.
    pub habits: crate::workload::Habits,
    /// What goes wrong on this machine.
    pub faults: Faults,
    /// What has happened last, with times, up to the first finding; empty unless it is recorded.
    pub timeline: VecDeque<(u64, Entry)>,
    /// It is recorded.
    pub recorded: bool,
    /// Where things were at the first finding; empty unless it is recorded.
    pub picture: Vec<String>,
    /// When the scheduler was loaded, ns since boot.
    pub booted_at: u64,
    /// The loader; `None`: S is fixed, and nobody answers the kernel half.
    pub reader: Option<Box<dyn Reader>>,
    /// What only some machines have.
    pub odd: crate::oddities::Odd,
    /// A trace is replayed; `None`: functions arrive as the seed draws them.
    pub replay: Option<crate::replay::Replay>,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Puts a new machine in place of the one before.
pub fn install(state: State) {
    STATE.with(|cell| *cell.borrow_mut() = Some(state));
}

/// Takes the machine away.
pub fn remove() -> Option<State> {
    STATE.with(|cell| cell.borrow_mut().take())
}

/// Works with the machine. Nothing in `work` may call the kernel half, which would come back here.
pub fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|cell| work(cell.borrow_mut().as_mut().expect("a machine is installed")))
}

impl State {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// `event` happens `delay` ns from now.
    pub fn after(&mut self, delay: u64, event: Event) {
        let number = self.number();
        self.events.push(Reverse((self.now + delay, number, event)));
    }

    /// CLOCK_MONOTONIC, which NTP may let drift from the clock of CPU time; ns since boot.
    pub fn monotonic(&self) -> u64 {
        let rate = 1_000_000 + i128::from(self.groups.load.drift_ppm);
        (i128::from(self.now) * rate / 1_000_000) as u64
    }

    /// The time until `ns` of CLOCK_MONOTONIC have passed: a timer is never early.
    pub fn until(&self, ns: u64) -> u64 {
        let rate = (1_000_000 + self.groups.load.drift_ppm) as u128;
        let at = (u128::from(self.monotonic() + ns) * 1_000_000).div_ceil(rate);
        (at as u64).saturating_sub(self.now)
    }

    /// Returns whether a task may run on a CPU.
    pub fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        if self.tasks[task].life.stays {
            return self.tasks[task].cpu == cpu;
        }
        // SAFETY: the task's memory lives as long as the machine, and has a bit for each CPU.
        let word = unsafe { *self.tasks[task].fields.cpus.add(cpu / 64) };
        word >> (cpu % 64) & 1 == 1
    }

    /// The random numbers of a task: its own, or those of the machine.
    pub fn own_random(&mut self, task: TaskId) -> &mut ChaCha8Rng {
        let own = self.tasks[task].random.as_deref_mut();
        own.unwrap_or(&mut self.random)
    }

    /// Notes what has happened for the timeline, up to the first finding.
    pub fn tell(&mut self, entry: Entry) {
        if !self.recorded || !self.findings.is_empty() || self.nothing_happened_in_pause(&entry) {
            return;
        }
        if self.timeline.len() == crate::timeline::LENGTH {
            self.timeline.pop_front();
        }
        self.timeline.push_back((self.now, entry));
    }

    /// `entry` ends a pause in which nothing has happened. Forgets the pause, and returns true.
    fn nothing_happened_in_pause(&mut self, entry: &Entry) -> bool {
        let (Entry::GoesOn(id, _), Some((_, Entry::Pauses(paused, _)))) =
            (entry, self.timeline.back())
        else {
            return false;
        };
        let is_empty = id == paused;
        if is_empty {
            self.timeline.pop_back();
        }
        is_empty
    }

    /// A violated invariant.
    pub fn finding(&mut self, text: String) {
        if self.recorded && self.findings.is_empty() {
            self.picture = crate::timeline::picture(self);
        }
        let ms = (self.now - self.booted_at) as f64 / 1e6;
        self.findings.push(format!("{ms:.3} ms: {text}"));
    }
}
