//! A machine under the kernel half: boots it, lets time pass, and checks invariants.

mod bypasses;
mod changes;
mod checks;
pub(crate) mod hints;
mod oddities;
mod replays;
mod starts;
mod timers;

use crate::limits::Limits;
use crate::loader::{self, Next};
use crate::replay::Replayer;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sfs_fibers::{Races, Totals};
use sfs_kernel_model::ffi::{self, Options};
use sfs_kernel_model::group_events::{self, GroupEvent};
use sfs_kernel_model::group_moves;
use sfs_kernel_model::groups::Groups;
use sfs_kernel_model::higher;
use sfs_kernel_model::life;
use sfs_kernel_model::lines;
use sfs_kernel_model::loader_ffi;
use sfs_kernel_model::promises::Promises;
use sfs_kernel_model::race;
use sfs_kernel_model::sched::{kicked, schedule, tick, update_curr, wake_up, yield_now};
pub use sfs_kernel_model::state::Faults;
use sfs_kernel_model::state::{install, remove, with, Cpu, Event, State, TaskId};
use sfs_kernel_model::steady;
use sfs_kernel_model::tasks::{sleeps, swapper};
use sfs_kernel_model::timeline::{picture, words, Entry};
use sfs_kernel_model::workload::{between, Then, Workload};
use sfs_kernel_objects::maps::Map;
use sfs_kernel_objects::maps::MapInfo;
use sfs_kernel_rules::watch;
use starts::{
    stream, ARRIVALS_STREAM, BYPASS_STREAM, CHANGES_STREAM, HINTS_STREAM, RACES_STREAM,
    REAL_TIME_STREAM,
};
pub use starts::{Settings, MOST_FINDINGS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Instant;

/// BPF_MAP_TYPE_TASK_STORAGE.
const TASK_STORAGE: u32 = 29;
/// SFS_BOUNDARY_HINT.
const HINTED: u32 = 1 << 4;
/// The time of boot; the kernel half takes 0 for "never".
const BOOT_NS: u64 = 1_000_000_000;
/// How often the invariants are checked, ns.
const CHECK_NS: u64 = 1_000_000;
/// No task waits for longer (docs/reliability.md).
const LONGEST_WAIT_NS: u64 = 11_000_000_000;
/// More events at one instant mean that time stands still. Those of 10,000 sleepers on 512 CPUs that
/// wake up at once are far fewer.
const MOST_AT_ONCE: u64 = 200_000;

/// What a run has shown.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Violated invariants, in order.
    pub findings: Vec<String>,
    /// What happened last before the first finding, or before the end: ns since load, and what.
    pub timeline: Vec<(u64, String)>,
    /// Where things were then: CPUs, and tasks that wait.
    pub picture: Vec<String>,
    /// Events that happened.
    pub events: u64,
    /// Callbacks of the kernel half that were called.
    pub callbacks: u64,
    /// Tasks that were there at some time.
    pub tasks: usize,
    /// What the loader has done, if there is one.
    pub loader: Option<String>,
    /// Transfers of cache lines, if they were counted.
    pub lines: Option<lines::Report>,
    /// How often a CPU got a task.
    pub switches: u64,
    /// The machine's time, ns.
    pub lasted_ns: u64,
    /// The run was given up, since it took too long.
    pub gave_up: bool,
    /// How often callbacks have interleaved; `None`: they do not on this machine.
    pub races: Option<Totals>,
    /// A digest of all that happened: the same seed has the same.
    pub digest: u64,
}

/// Runs a seed for `ns` of the machine's time. One process runs one seed only: the kernel half's
/// variables are those of the process.
pub fn run(seed: u64, ns: u64, settings: &Settings) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut workload = Workload::draw(&mut random);
    settings.limits.apply(&mut workload);
    let ns = if workload.groups.is_steady {
        (steady::TIMES * ns).min(steady::LONGEST_NS)
    } else {
        ns
    };
    live((workload, random), seed, ns, settings, None).0
}

/// A machine with this workload and these random numbers lives for `ns`. Returns what it has shown,
/// and its last state.
pub(crate) fn live(
    (workload, random): (Workload, ChaCha8Rng),
    seed: u64,
    ns: u64,
    settings: &Settings,
    replayer: Option<Replayer>,
) -> (Outcome, State) {
    boot(&workload, seed, random, settings);
    if replayer.is_some() {
        // The replayer takes CPUs as a real-time task.
        with(|s| s.promises = Promises::new(false, workload.tick_ns));
    }
    let mut machine = Machine {
        replayer,
        workload,
        seed,
        limits: settings.limits.clone(),
        arrivals: stream(seed, ARRIVALS_STREAM),
        changes: stream(seed, CHANGES_STREAM),
        hints: stream(seed, HINTS_STREAM),
        bypasses: stream(seed, BYPASS_STREAM),
        arrived: 0,
        changed: 0,
        most_findings: settings.most_findings,
        left_out: 0,
        end: BOOT_NS + ns,
        digest: seed,
        events: 0,
        at_once: 0,
        until: settings.longest.map(|longest| Instant::now() + longest),
        gave_up: false,
        check_ns: CHECK_NS,
    };
    machine.load();
    if settings.counts_lines {
        lines::start(&machine.workload.topology);
    }
    let mut races = stream(seed, RACES_STREAM);
    let drawn = settings.limits.apply_to_races(Races::draw(&mut races));
    // A replay is compared with a machine whose callbacks take no time.
    if let Some(drawn) = drawn.filter(|_| machine.replayer.is_none()) {
        sfs_fibers::install(drawn, races);
    }
    let is_bypassed = with(|s| s.odd.of.bypass_ns > 0);
    if settings.watched && machine.replayer.is_none() && !settings.counts_lines && !is_bypassed {
        watch::begin();
    }
    machine.pass_time();
    watch::end();
    let races = race::end();
    let lines = lines::end();
    oddities::dump();
    with(steady::compare);
    let state = remove().expect("the machine is there until here");
    let outcome = Outcome {
        findings: state.findings.clone(),
        timeline: state
            .timeline
            .iter()
            .filter_map(|(at, entry)| Some((at - BOOT_NS, words(&state, entry)?)))
            .collect(),
        picture: match state.findings.is_empty() {
            true if state.recorded => picture(&state),
            _ => state.picture.clone(),
        },
        events: machine.events,
        callbacks: state.callbacks,
        tasks: state.tasks.len() - machine.left_out,
        digest: machine.digest,
        loader: loader::summary(&state),
        races,
        lines,
        switches: state.cpus.iter().map(|cpu| cpu.turn).sum(),
        lasted_ns: state.now - BOOT_NS,
        gave_up: machine.gave_up,
    };
    for task in &state.tasks {
        // SAFETY: the kernel half is not called any more.
        unsafe { ffi::model_free_task(task.fields.task) };
    }
    (outcome, state)
}

/// Makes the machine, without tasks.
fn boot(workload: &Workload, seed: u64, random: ChaCha8Rng, settings: &Settings) {
    let groups = Groups::new(workload.groups);
    let odd = oddities::drawn(workload, seed, settings);
    // Quotas and weights of groups come before promises, and a task without a context has none.
    let makes_promises =
        workload.real_time.is_none() && workload.groups.most == 0 && odd.of.is_usual();
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
    let hints = if odd.of.hints_ns > 0 { HINTED } else { 0 };
    // SAFETY: takes plain values.
    unsafe { ffi::model_tune_boundaries(of.kinds | hints, of.unit, of.idle_ns, of.port) };
    let shard_of = |cpu| odd.of.shard_of(cpu, workload.cpus);
    let shards: Vec<u8> = (0..workload.cpus).map(shard_of).collect();
    // SAFETY: there is a shard for each CPU.
    unsafe { loader_ffi::model_tune_shards(odd.of.shards, shards.as_ptr()) };
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
        swapper: swapper(BOOT_NS),
        random,
        outside_random: stream(seed, REAL_TIME_STREAM),
        findings: Vec::new(),
        callbacks: 0,
        promises: Promises::new(makes_promises, workload.tick_ns),
        habits: workload.habits,
        faults: settings.faults,
        timeline: VecDeque::new(),
        recorded: settings.recorded,
        picture: Vec::new(),
        booted_at: BOOT_NS,
        reader: None,
        odd,
        replay: None,
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
    /// Replays a trace; `None`: functions arrive as the seed draws them.
    replayer: Option<Replayer>,
    workload: Workload,
    seed: u64,
    limits: Limits,
    arrivals: ChaCha8Rng,
    changes: ChaCha8Rng,
    hints: ChaCha8Rng,
    bypasses: ChaCha8Rng,
    /// Functions that have arrived, also those that are left out.
    arrived: u64,
    /// The same for changes of tasks.
    changed: u64,
    /// The run ends with more findings than these.
    most_findings: usize,
    /// Residents that are left out.
    left_out: usize,
    end: u64,
    digest: u64,
    events: u64,
    /// Those of this instant.
    at_once: u64,
    /// When it is given up.
    until: Option<Instant>,
    gave_up: bool,
    check_ns: u64,
}

impl Machine {
    fn pass_time(&mut self) {
        while let Some((at, event)) = self.next_event() {
            if at > self.end || with(|s| s.findings.len() > self.most_findings) {
                return;
            }
            if with(|s| loader::is_gone(s)) {
                race::finish();
                return self.check();
            }
            if self.stands_still(at) || self.takes_long() {
                return;
            }
            with(|s| {
                s.now = at;
                // Ticks of idle CPUs say nothing.
                if !matches!(event, Event::Tick(cpu) if s.cpus[cpu].current.is_none()) {
                    s.tell(Entry::Event(event));
                }
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
                Event::Reader(_) => 11 << 32,
                Event::Group(_) => 12 << 32,
                Event::Hint => 14 << 32,
                Event::Bypass(cpu, on) => 15 << 32 | (cpu as u64) << 1 | u64::from(on),
                Event::Forked(number) => 13 << 32 | u64::from(number),
            };
            self.digest(at, number);
            self.happens(event);
        }
    }

    /// The next event and its time, ns. Callbacks whose pause is over before it go on.
    fn next_event(&mut self) -> Option<(u64, Event)> {
        loop {
            let next = with(|s| s.events.peek().map(|event| event.0 .0))?;
            match race::next_at().filter(|&at| at < next) {
                None => break,
                Some(at) => with(|s| s.now = s.now.max(at)),
            }
            let number = race::proceeds().unwrap_or(0);
            self.digest(with(|s| s.now), number.rotate_left(40));
        }
        let Reverse((at, _, event)) = with(|s| s.events.pop())?;
        Some((at, event))
    }

    /// Counts the events of this instant. Returns true, with a finding, if they do not end.
    fn stands_still(&mut self, at: u64) -> bool {
        let same = with(|s| s.now == at);
        self.at_once = if same { self.at_once + 1 } else { 0 };
        if self.at_once > MOST_AT_ONCE {
            with(|s| s.finding("events at one instant do not end".into()));
        }
        self.at_once > MOST_AT_ONCE
    }

    /// Returns true if the run is to be given up.
    fn takes_long(&mut self) -> bool {
        // Now and then, since asking for the time takes as long as an event.
        let is_over = |until| self.events.is_multiple_of(64) && Instant::now() > until;
        self.gave_up |= self.until.is_some_and(is_over);
        self.gave_up
    }

    fn digest(&mut self, at: u64, number: u64) {
        let mixed = self.digest ^ at ^ number.rotate_left(17);
        self.digest = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Tick(cpu) => {
                with(|s| s.after(self.workload.tick_ns, Event::Tick(cpu)));
                race::happens(event, Some(cpu), move || tick(cpu));
            }
            Event::Resched(cpu) => race::happens(event, Some(cpu), move || {
                if with(|s| s.cpus[cpu].resched) {
                    schedule(cpu);
                }
            }),
            Event::Kick(cpu, flags) => race::happens(event, None, move || kicked(cpu, flags)),
            Event::Done(cpu, turn) => race::happens(event, Some(cpu), move || done(cpu, turn)),
            Event::Wake(task) => race::happens(event, None, move || wake(task)),
            Event::Arrival if self.replayer.is_some() => self.replay_next(),
            Event::Arrival => self.arrive(event),
            Event::Forked(number) => self.forked(number),
            Event::Change => self.change(event),
            Event::Hint => self.hint(event),
            Event::Bypass(cpu, on) => self.bypass(event, cpu, on),
            Event::RealTime => {
                if let Some(kind) = self.workload.real_time {
                    higher::wakes(kind);
                }
            }
            Event::RealTimeSleeps(cpu, turn) => {
                race::happens(event, Some(cpu), move || higher::sleeps(cpu, turn));
            }
            Event::Group(GroupEvent::Born(group)) => self.born(event, group),
            Event::Group(change) => {
                let cpu = match change {
                    GroupEvent::Return(task, _) => with(|s| Some(s.tasks[task].cpu)),
                    _ => None,
                };
                race::happens(event, cpu, move || group_events::happens(change));
            }
            Event::Timer(timer, start) => {
                race::happens(event, None, move || timers::fire(timer, start))
            }
            Event::Reader(nudge) => race::happens(event, None, move || loader::nudged(nudge)),
            Event::Check => {
                race::finish();
                // Checks of large crowds take long, so they are rarer.
                self.check_ns = CHECK_NS * (1 + with(|s| s.live.len() as u64) / 500);
                with(|s| s.after(self.check_ns, Event::Check));
                self.check();
                self.end_replay();
            }
        }
    }
}

/// A task has had the CPU time that it wanted.
fn done(cpu: usize, turn: u64) {
    let task = with(|s| {
        let current = s.cpus[cpu].current.filter(|_| s.cpus[cpu].turn == turn)?;
        update_curr(s, cpu);
        Some(current)
    });
    let Some(task) = task else { return };
    group_moves::finish_move(task);
    match life::step(cpu, task) {
        Then::GoesOn => with(|s| {
            let left = s.tasks[task].left_ns;
            s.after(left, Event::Done(cpu, turn));
        }),
        Then::Stops => {
            with(|s| s.tasks[task].stops = true);
            schedule(cpu);
        }
        Then::Serves => match loader::step(cpu) {
            Next::Runs(ns) => with(|s| {
                s.tasks[task].left_ns = ns;
                s.after(ns, Event::Done(cpu, turn));
            }),
            Next::Sleeps => {
                with(|s| s.tasks[task].stops = true);
                schedule(cpu);
            }
            Next::Unloads => {}
        },
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
fn wake(task: TaskId) {
    let _waking = race::wakes(task);
    if !with(|s| sleeps(s, task)) {
        return; // a signal was earlier
    }
    let (cpu, is_new) = with(|s| {
        life::plan(s, task);
        let last = s.cpus.len() as u64 - 1;
        let cpu = match s.replay {
            // hrtimer_start(): a sleep's timer fires where it was started.
            Some(_) => s.tasks[task].cpu,
            None => between(s.own_random(task), 0, last) as usize,
        };
        let cpu = race::place(s, cpu);
        (cpu, std::mem::take(&mut s.tasks[task].life.is_new))
    });
    wake_up(cpu, task, is_new);
}
