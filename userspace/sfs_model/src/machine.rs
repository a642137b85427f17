//! A machine under the kernel half: boots it, lets time pass, and checks invariants.

use crate::change::{change, set_cpus, set_weight};
use crate::ffi::{self, Counts, MapInfo, Options};
use crate::higher;
use crate::life;
use crate::maps::Map;
use crate::promises::{self, Promises};
use crate::sched::{kicked, schedule, tick, update_curr, wake_up, yield_now};
pub use crate::state::Faults;
use crate::state::{install, remove, with, Cpu, Event, Place, State, TaskId, FIRST_PID};
use crate::tasks::{init_task, new_fields, push_task, swapper, KERNEL_THREAD};
use crate::workload::{between, exponential, Behaviour, Then, Workload};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::ptr;

/// BPF_MAP_TYPE_TASK_STORAGE.
const TASK_STORAGE: u32 = 29;
/// The time of boot; the kernel half takes 0 for "never".
const BOOT_NS: u64 = 1_000_000_000;
/// How often the invariants are checked, ns.
const CHECK_NS: u64 = 1_000_000;
/// So many events are kept.
const TIMELINE: usize = 200;
/// No task waits for longer (docs/reliability.md).
const LONGEST_WAIT_NS: u64 = 11_000_000_000;

/// What a run has shown.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Violated invariants, in order.
    pub findings: Vec<String>,
    /// The last events before the first finding, or before the end: ns since boot, and what.
    pub timeline: Vec<(u64, String)>,
    /// Events that happened.
    pub events: u64,
    /// Callbacks of the kernel half that were called.
    pub callbacks: u64,
    /// Tasks that were there at some time.
    pub tasks: usize,
    /// A digest of all that happened: the same seed has the same.
    pub digest: u64,
}

/// Runs a seed for `ns` of the machine's time. One process runs one seed only: the kernel half's
/// variables are those of the process.
pub fn run(seed: u64, ns: u64, faults: Faults) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let workload = Workload::draw(&mut random);
    boot(&workload, random, faults);
    let mut machine = Machine {
        workload,
        end: BOOT_NS + ns,
        digest: seed,
        events: 0,
        check_ns: CHECK_NS,
    };
    machine.load();
    machine.pass_time();
    let state = remove().expect("the machine is there until here");
    let outcome = Outcome {
        findings: state.findings.clone(),
        timeline: state
            .timeline
            .iter()
            .map(|(at, event)| (at - BOOT_NS, format!("{event:?}")))
            .collect(),
        events: machine.events,
        callbacks: state.callbacks,
        tasks: state.tasks.len(),
        digest: machine.digest,
    };
    for task in &state.tasks {
        // SAFETY: the kernel half is not called any more.
        unsafe { ffi::model_free_task(task.fields.task) };
    }
    outcome
}

/// Makes the machine, without tasks.
fn boot(workload: &Workload, random: ChaCha8Rng, faults: Faults) {
    let options = Options {
        cpus: workload.cpus as u32,
        policy: workload.policy,
        slice_ns: workload.slice_ns,
    };
    // SAFETY: `options` lives during the call.
    unsafe { ffi::model_tune(&options) };
    // SAFETY: there is a place for each CPU.
    unsafe { ffi::model_tune_topology(workload.topology.as_ptr()) };
    let of = workload.boundaries;
    // SAFETY: takes plain values.
    unsafe { ffi::model_tune_boundaries(of.kinds, of.unit, of.idle_ns, of.port) };
    let maps = maps();
    let keyed = maps.iter().filter(|info| info.kind != TASK_STORAGE);
    let of = |info: &MapInfo| (info.map as usize, Map::new(*info, workload.cpus));
    let mut all: BTreeMap<usize, Map> = keyed.map(of).collect();
    for info in maps.iter().filter(|info| info.kind == TASK_STORAGE) {
        all.insert(info.map as usize, Map::new(*info, 1));
    }
    install(State {
        now: BOOT_NS,
        tasks: Vec::new(),
        cpus: (0..workload.cpus).map(|_| idle_cpu()).collect(),
        queues: BTreeMap::new(),
        maps: all,
        live: BTreeSet::new(),
        timers: BTreeMap::new(),
        walks: BTreeMap::new(),
        events: BinaryHeap::new(),
        counter: 0,
        here: 0,
        directs: None,
        in_dispatch: false,
        swapper: swapper(BOOT_NS),
        random,
        findings: Vec::new(),
        callbacks: 0,
        promises: Promises::new(workload.real_time.is_none(), workload.tick_ns),
        habits: workload.habits,
        faults,
        timeline: VecDeque::new(),
    });
}

fn idle_cpu() -> Cpu {
    Cpu {
        idle_since: BOOT_NS,
        ..Cpu::default()
    }
}

fn maps() -> Vec<MapInfo> {
    let mut count = 0;
    // SAFETY: returns a table of `count` entries that lives forever.
    unsafe {
        let first = ffi::model_list_maps(&mut count);
        std::slice::from_raw_parts(first, count as usize).to_vec()
    }
}

struct Machine {
    workload: Workload,
    end: u64,
    digest: u64,
    events: u64,
    check_ns: u64,
}

impl Machine {
    /// Loads the scheduler, as scx_enable() does.
    fn load(&mut self) {
        for &(behaviour, is_kernel_thread) in &self.workload.residents.clone() {
            self.add_task(behaviour, is_kernel_thread);
        }
        // SAFETY: the machine is there.
        let err = unsafe { ffi::sfs_init() };
        assert_eq!(err, 0, "the scheduler does not load");
        // SAFETY: the same.
        let err = unsafe { ffi::model_init_root() };
        assert_eq!(err, 0, "the root group is refused");
        for cpu in 0..self.workload.cpus {
            // SAFETY: takes plain values.
            unsafe { ffi::model_set_idle(cpu as u32, true) };
        }
        for task in 0..self.workload.residents.len() {
            let (is_forked, starts) = with(|s| s.tasks[task].behaviour.begins());
            init_task(task, is_forked);
            with(|s| {
                let delay = between(&mut s.random, 0, 5_000_000);
                s.tasks[task].life.is_new = is_forked;
                let is_kernel = self.workload.residents[task].1;
                s.tasks[task].promise.is_outside = is_kernel || !is_forked;
                s.tasks[task].promise.is_kernel = is_kernel;
                if starts {
                    s.after(delay, Event::Wake(task));
                }
            });
        }
        if let Some(kind) = self.workload.real_time {
            higher::add(kind);
        }
        with(|s| {
            for cpu in 0..s.cpus.len() {
                let phase = between(&mut s.random, 0, self.workload.tick_ns);
                s.after(phase, Event::Tick(cpu));
            }
            s.after(1_000_000, Event::Arrival);
            s.after(CHECK_NS, Event::Check);
            if self.workload.changes_ns > 0 {
                s.after(self.workload.changes_ns, Event::Change);
            }
        });
    }

    fn add_task(&mut self, behaviour: Behaviour, is_kernel_thread: bool) -> TaskId {
        with(|s| {
            let fields = new_fields(FIRST_PID + s.tasks.len() as i32, s.now);
            if is_kernel_thread {
                // SAFETY: the task is new.
                unsafe { *fields.flags |= KERNEL_THREAD };
            }
            let cpu = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            if between(&mut s.random, 1, self.workload.pinned_of) == 1 && s.cpus.len() > 1 {
                // SAFETY: the mask has a bit for each CPU.
                unsafe {
                    (0..s.cpus.len().div_ceil(64)).for_each(|word| *fields.cpus.add(word) = 0);
                    *fields.cpus.add(cpu / 64) = 1 << (cpu % 64);
                    *fields.nr_cpus = 1;
                }
            }
            push_task(s, fields, behaviour, cpu)
        })
    }

    fn pass_time(&mut self) {
        while let Some((at, event)) = with(|s| {
            let Reverse((at, _, event)) = s.events.pop()?;
            Some((at, event))
        }) {
            if at > self.end || with(|s| s.findings.len() > 20) {
                return;
            }
            with(|s| {
                s.now = at;
                note(s, event);
            });
            self.events += 1;
            let number = match event {
                Event::Tick(cpu) => cpu as u64,
                Event::Resched(cpu) => 1 << 32 | cpu as u64,
                Event::Kick(cpu, _) => 2 << 32 | cpu as u64,
                Event::Done(cpu, _) => 3 << 32 | cpu as u64,
                Event::Wake(task) => 4 << 32 | task as u64,
                Event::Arrival => 5 << 32,
                Event::Timer(..) => 6 << 32,
                Event::Check => 7 << 32,
                Event::Change => 8 << 32,
                Event::RealTime => 9 << 32,
                Event::RealTimeSleeps(cpu, _) => 10 << 32 | cpu as u64,
            };
            let mixed = self.digest ^ at ^ number.rotate_left(17);
            self.digest = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            self.happens(event);
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Tick(cpu) => {
                with(|s| s.after(self.workload.tick_ns, Event::Tick(cpu)));
                tick(cpu);
            }
            Event::Resched(cpu) => {
                if with(|s| s.cpus[cpu].resched) {
                    schedule(cpu);
                }
            }
            Event::Kick(cpu, flags) => kicked(cpu, flags),
            Event::Done(cpu, turn) => self.done(cpu, turn),
            Event::Wake(task) => self.wake(task),
            Event::Arrival => self.arrive(),
            Event::Change => self.change(),
            Event::RealTime => {
                if let Some(kind) = self.workload.real_time {
                    higher::wakes(kind);
                }
            }
            Event::RealTimeSleeps(cpu, turn) => higher::sleeps(cpu, turn),
            Event::Timer(timer, start) => fire(timer, start),
            Event::Check => {
                // Checks of large crowds take long, so they are rarer.
                self.check_ns = CHECK_NS * (1 + with(|s| s.live.len() as u64) / 500);
                with(|s| s.after(self.check_ns, Event::Check));
                self.check();
            }
        }
    }

    /// A task has had the CPU time that it wanted.
    fn done(&self, cpu: usize, turn: u64) {
        let task = with(|s| {
            let current = s.cpus[cpu].current.filter(|_| s.cpus[cpu].turn == turn)?;
            update_curr(s, cpu);
            Some(current)
        });
        let Some(task) = task else { return };
        match life::step(cpu, task) {
            Then::GoesOn => with(|s| {
                let left = s.tasks[task].left_ns;
                s.after(left, Event::Done(cpu, turn));
            }),
            Then::Stops => {
                with(|s| s.tasks[task].stops = true);
                schedule(cpu);
            }
            Then::Yields => {
                with(|s| life::plan(s, task));
                yield_now(cpu, task);
                with(|s| {
                    // Without another task it goes on, in the same turn.
                    if s.cpus[cpu].current == Some(task) && s.cpus[cpu].turn == turn {
                        let left = s.tasks[task].left_ns;
                        s.after(left, Event::Done(cpu, turn));
                    }
                });
            }
        }
    }

    /// A sleep is over; an interrupt on any CPU says so.
    fn wake(&self, task: TaskId) {
        let (cpu, is_new) = with(|s| {
            life::plan(s, task);
            let cpu = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            s.here = cpu;
            (cpu, std::mem::take(&mut s.tasks[task].life.is_new))
        });
        wake_up(cpu, task, is_new);
    }

    /// A process is forked.
    fn arrive(&mut self) {
        let (behaviour, cpu) = with(|s| {
            let delay = exponential(&mut s.random, self.workload.arrivals_ns);
            let cpu = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            s.here = cpu;
            s.after(delay, Event::Arrival);
            (self.workload.function(&mut s.random), cpu)
        });
        let task = self.add_task(behaviour, false);
        init_task(task, true);
        with(|s| {
            s.tasks[task].life.is_unborn = true;
            life::plan(s, task);
        });
        wake_up(cpu, task, true);
    }

    /// Somebody changes a task, wherever it is.
    fn change(&self) {
        let chosen = with(|s| {
            let delay = exponential(&mut s.random, self.workload.changes_ns);
            s.after(delay, Event::Change);
            s.here = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            let last = (s.live.len() as u64).checked_sub(1)?;
            let task = between(&mut s.random, 0, last) as usize;
            let task = *s.live.iter().nth(task)?;
            let value = between(&mut s.random, 0, u64::MAX - 1);
            Some((s.here, task, value))
        });
        let Some((cpu, task, value)) = chosen else {
            return;
        };
        change(cpu, task, |s| match value % 2 {
            0 => set_weight(s, task, value / 2),
            _ => set_cpus(s, task, value / 2),
        });
    }

    /// The invariants.
    fn check(&self) {
        recount();
        with(|s| {
            promises::check(s);
            let limit = self.idle_limit();
            let idles = |cpu: &Cpu| {
                let is_free = cpu.current.is_none() && cpu.higher.runs.is_none();
                is_free && s.now - cpu.idle_since > limit
            };
            let cpus = s.cpus.iter().enumerate();
            let idle: Vec<usize> = cpus.filter(|(_, cpu)| idles(cpu)).map(|(n, _)| n).collect();
            let live: Vec<TaskId> = s.live.iter().copied().collect();
            for task in live {
                let Some(since) = s.tasks[task].waits_since else {
                    continue;
                };
                let waited = s.now - since;
                if s.tasks[task].place == Place::Moving {
                    s.finding(format!("task {task} is in no queue"));
                }
                if waited > LONGEST_WAIT_NS {
                    s.finding(format!(
                        "task {task} has waited for {} ms",
                        waited / 1_000_000
                    ));
                }
                self.check_idle(s, task, since, &idle);
            }
        });
    }

    /// No CPU idles for longer than a tick while a task waits that may run there.
    fn check_idle(&self, s: &mut State, task: TaskId, since: u64, idle: &[usize]) {
        for &cpu in idle {
            if !s.may_run(task, cpu) || higher::is_stuck(s, task) {
                continue;
            }
            let since = since.max(s.tasks[task].allowed_since);
            let both = s.now - since.max(s.cpus[cpu].idle_since);
            if both > self.idle_limit() {
                let (place, behaviour) = (s.tasks[task].place, s.tasks[task].behaviour);
                s.finding(format!(
                    "CPU {cpu} has idled for {} us while task {task} ({behaviour:?}) waits in \
                     {place:x?}",
                    both / 1_000,
                ));
            }
        }
    }

    /// A tick, and the time until the next check.
    fn idle_limit(&self) -> u64 {
        self.workload.tick_ns.max(4_000_000) + self.check_ns
    }
}

/// Keeps the last events up to the first finding.
fn note(s: &mut State, event: Event) {
    if !s.findings.is_empty() {
        return;
    }
    if s.timeline.len() == TIMELINE {
        s.timeline.pop_front();
    }
    s.timeline.push_back((s.now, event));
}

/// What the kernel half counts is what a recount gives, and no queue has more tasks than count.
fn recount() {
    let tasks: Vec<_> = with(|s| {
        s.live
            .iter()
            .map(|&task| s.tasks[task].fields.task)
            .collect()
    });
    let (mut counted, mut all) = (Counts::default(), Counts::default());
    for task in tasks {
        let mut of = Counts::default();
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_counts_of(task, &mut of) };
        counted.demand += of.demand;
        counted.present += of.present;
        counted
            .waiting
            .iter_mut()
            .zip(of.waiting)
            .for_each(|(sum, n)| *sum += n);
    }
    // SAFETY: writes to `all` only.
    unsafe { ffi::model_counts_in_all(&mut all) };
    with(|s| {
        if counted != all {
            s.finding(format!(
                "the kernel half counts {all:?}, and a recount gives {counted:?}"
            ));
        }
        for (number, &waiting) in all.waiting.iter().enumerate().skip(1) {
            let length = s
                .queues
                .get(&((number as u64) << 16))
                .map_or(0, |dsq| dsq.len() as i64);
            if length > waiting {
                s.finding(format!(
                    "queue {number} has {length} tasks, and {waiting} count"
                ));
            }
        }
    });
}

/// A BPF timer fires, if it has not been started again.
fn fire(timer: usize, start: u64) {
    let Some(found) = with(|s| s.timers.get(&timer).copied()) else {
        return;
    };
    if found.start != start || found.callback.is_null() {
        return;
    }
    let mut key: u32 = 0;
    type Callback = unsafe extern "C" fn(*mut std::ffi::c_void, *mut u32, usize) -> i32;
    // SAFETY: the kernel half gave a function of this type as the timer's callback.
    unsafe {
        let callback: Callback = std::mem::transmute(found.callback);
        callback(found.map, ptr::from_mut(&mut key), timer);
    }
}
