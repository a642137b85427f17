//! A machine under the kernel half: boots it, lets time pass, and checks invariants.

use crate::ffi::{self, Counts, Fields, MapInfo, Options, TaskStruct};
use crate::group_events::{self, GroupEvent};
use crate::groups::{self, GroupId, Groups};
use crate::maps::Map;
use crate::sched::{change, kicked, schedule, tick, update_curr, wake_up, yield_now};
pub use crate::state::Faults;
use crate::state::{install, remove, with, Cpu, Event, Place, State, Task, TaskId, FIRST_PID};
use crate::workload::{between, exponential, Behaviour, Then, Workload};
use crate::{group_checks, group_moves, steady, task_work};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::mem::MaybeUninit;
use std::ptr;

/// BPF_MAP_TYPE_TASK_STORAGE.
const TASK_STORAGE: u32 = 29;
/// PF_KTHREAD.
const KERNEL_THREAD: u32 = 0x0020_0000;
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
    let ns = if workload.groups.is_steady {
        steady::TIMES * ns
    } else {
        ns
    };
    let mut machine = Machine {
        workload,
        end: BOOT_NS + ns,
        digest: seed,
        events: 0,
        check_ns: CHECK_NS,
    };
    machine.load();
    machine.pass_time();
    with(steady::compare);
    let state = remove().expect("the machine is there until here");
    let outcome = Outcome {
        findings: state.findings.clone(),
        timeline: state
            .timeline
            .iter()
            .map(|(at, event)| (at - BOOT_NS, name(*event)))
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
    let groups = Groups::new(workload.groups);
    let options = Options {
        cpus: workload.cpus as u32,
        policy: workload.policy,
        slice_ns: workload.slice_ns,
    };
    // SAFETY: `options` lives during the call.
    unsafe { ffi::model_tune(&options) };
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
        groups,
        maps: all,
        live: BTreeSet::new(),
        timers: BTreeMap::new(),
        walks: BTreeMap::new(),
        events: BinaryHeap::new(),
        counter: 0,
        here: 0,
        directs: None,
        in_dispatch: false,
        swapper: new_fields(0, BOOT_NS).task,
        random,
        findings: Vec::new(),
        callbacks: 0,
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

fn new_fields(pid: i32, now: u64) -> Fields {
    let mut fields = MaybeUninit::uninit();
    // SAFETY: `fields` has room for what is written; it is written unless null comes back.
    unsafe {
        let task: *mut TaskStruct = ffi::model_new_task(pid, now, fields.as_mut_ptr());
        assert!(!task.is_null(), "no memory for a task");
        fields.assume_init()
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
        group_events::load();
        for cpu in 0..self.workload.cpus {
            // SAFETY: takes plain values.
            unsafe { ffi::model_set_idle(cpu as u32, true) };
        }
        for task in 0..self.workload.residents.len() {
            self.init_task(task, false);
            with(|s| {
                let delay = between(&mut s.random, 0, 5_000_000);
                s.after(delay, Event::Wake(task));
            });
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
            let id = s.tasks.len();
            let fields = new_fields(FIRST_PID + id as i32, s.monotonic());
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
            s.tasks.push(Task {
                fields,
                place: Place::Asleep,
                cpu,
                queued_as: 0,
                key: (0, 0),
                left_ns: behaviour.next_turn(&mut s.random),
                stops: false,
                waits_since: None,
                allowed_since: s.now,
                direct: None,
                behaviour,
                context: None,
            });
            s.live.insert(id);
            groups::enter(s, id, is_kernel_thread);
            id
        })
    }

    /// scx_init_task() and scx_enable_task().
    fn init_task(&self, task: TaskId, fork: bool) {
        if !fork {
            groups::post_fork(task);
        }
        let pointer = with(|s| s.tasks[task].fields.task);
        // SAFETY: the task is one of the machine's.
        let err = unsafe { ffi::model_init_task(pointer, fork) };
        if err != 0 {
            return with(|s| s.finding(format!("init_task refuses task {task}: {err}")));
        }
        // SAFETY: the same.
        unsafe { ffi::sfs_enable(pointer) };
        if fork {
            groups::post_fork(task);
        }
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
                Event::Group(_) => 9 << 32,
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
            Event::Group(GroupEvent::Born(group)) => self.born(group),
            Event::Group(event) => group_events::happens(event),
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
        group_moves::finish_move(task);
        if task_work::begins_exit(cpu, task, turn) {
            return;
        }
        match with(|s| s.tasks[task].behaviour.then()) {
            Then::Stops => {
                with(|s| s.tasks[task].stops = true);
                schedule(cpu);
            }
            Then::Yields => {
                with(|s| next_turn(s, task));
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
        if with(|s| s.tasks[task].place != Place::Asleep) {
            return; // a signal was earlier
        }
        let cpu = with(|s| {
            next_turn(s, task);
            let cpu = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            s.here = cpu;
            cpu
        });
        wake_up(cpu, task, false);
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
        self.fork(behaviour, cpu);
    }

    /// A hog is forked in a group.
    fn born(&mut self, group: GroupId) {
        let cpu = with(|s| {
            s.groups.birthplace = Some(group);
            s.here = between(&mut s.random, 0, s.cpus.len() as u64 - 1) as usize;
            s.here
        });
        self.fork(Behaviour::Hog, cpu);
    }

    fn fork(&mut self, behaviour: Behaviour, cpu: usize) {
        let task = self.add_task(behaviour, false);
        self.init_task(task, true);
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
        group_checks::check(self.workload.tick_ns);
        with(|s| {
            let limit = self.idle_limit();
            let idles = |cpu: &Cpu| cpu.current.is_none() && s.now - cpu.idle_since > limit;
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
                if !groups::is_parked(s.tasks[task].place) {
                    self.check_idle(s, task, since, &idle);
                }
            }
        });
    }

    /// No CPU idles for longer than a tick while a task waits that may run there.
    fn check_idle(&self, s: &mut State, task: TaskId, since: u64, idle: &[usize]) {
        for &cpu in idle {
            if !s.may_run(task, cpu) {
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

/// A weight from 1 to 10000, more often a low or a high one.
fn set_weight(s: &mut State, task: TaskId, value: u64) {
    let weight = [1, 3, 100, 100, 1_000, 10_000][value as usize % 6];
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.weight = weight };
}

/// One CPU, all, or some. A task that runs keeps its CPU among them; one that waits goes with
/// its run queue.
fn set_cpus(s: &mut State, task: TaskId, value: u64) {
    let (count, fields) = (s.cpus.len(), s.tasks[task].fields);
    let keep = if s.tasks[task].place == Place::Running {
        s.tasks[task].cpu
    } else {
        (value >> 8) as usize % count
    };
    let allowed = |cpu: usize| match value % 3 {
        0 => cpu == keep,
        1 => true,
        _ => cpu == keep || value.rotate_right(cpu as u32) & 1 == 1,
    };
    let mut cpus = 0;
    // SAFETY: the task's memory lives as long as the machine, and has a bit for each CPU.
    unsafe {
        for word in 0..count.div_ceil(64) {
            *fields.cpus.add(word) = 0;
        }
        for cpu in (0..count).filter(|&cpu| allowed(cpu)) {
            *fields.cpus.add(cpu / 64) |= 1 << (cpu % 64);
            cpus += 1;
        }
        *fields.nr_cpus = cpus;
    }
    s.tasks[task].allowed_since = s.now;
    let here = s.tasks[task].cpu;
    if !s.may_run(task, here) {
        s.tasks[task].cpu = keep;
    }
}

/// The event in words that are the same in each run: a timer's address is not.
fn name(event: Event) -> String {
    match event {
        Event::Timer(_, start) => format!("Timer(start {start})"),
        event => format!("{event:?}"),
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

fn next_turn(s: &mut State, task: TaskId) {
    let behaviour = s.tasks[task].behaviour;
    s.tasks[task].left_ns = behaviour.next_turn(&mut s.random);
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
