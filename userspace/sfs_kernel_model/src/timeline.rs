//! What has happened on the machine, in words.

use crate::ffi::TaskStruct;
use crate::life::Act;
use crate::reader::Nudge;
use crate::social::Social;
use crate::state::{with, CpuId, Event, Place, State, TaskId};
use crate::tasks::KERNEL_THREAD;
use crate::workload::Behaviour;

/// So many entries are kept.
pub const LENGTH: usize = 400;
/// So many tasks are shown where they wait.
const SHOWN: usize = 20;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An event.
    Event(Event),
    /// A function has arrived as this task.
    Arrives(TaskId),
    /// Somebody has changed this of a task.
    Changed(TaskId, String),
    /// A task waits in this queue.
    Queued(TaskId, u64),
    /// A task waits in the local queue of a CPU.
    Local(TaskId, CpuId),
    /// A CPU begins to run a task, for a turn of this kind.
    Runs(CpuId, TaskId, u32),
    /// A CPU has nothing to do.
    Idles(CpuId),
    /// A task goes to sleep.
    Sleeps(TaskId),
    /// A task has ended.
    Ends(TaskId),
    /// A task does this while it runs.
    Acts(TaskId, Act),
    /// A real-time task has a CPU from now on.
    Taken(CpuId),
    /// The callback with this number, on a CPU, pauses: others go on.
    Pauses(u64, CpuId),
    /// It goes on.
    GoesOn(u64, CpuId),
    /// The loader has done this.
    Loader(String),
}

/// The name of a task: its kind and its number.
pub fn name(s: &State, id: TaskId) -> String {
    let Some(task) = s.tasks.get(id) else {
        return format!("task {id}");
    };
    // SAFETY: the task's memory lives as long as the machine.
    let is_kernel_thread = unsafe { *task.fields.flags } & KERNEL_THREAD != 0;
    let kind = match (is_kernel_thread, task.behaviour) {
        (true, _) => "kernel thread",
        (_, Behaviour::Daemon { .. }) => "daemon",
        (_, Behaviour::Hog) => "hog",
        (_, Behaviour::Endless) => "endless function",
        (_, Behaviour::Social(Social::Ring { .. })) => "ring member",
        (_, Behaviour::Social(Social::Sender { .. })) => "sender",
        (_, Behaviour::Social(Social::Receiver { .. })) => "receiver",
        (_, Behaviour::Social(Social::Forker { .. })) => "forker",
        (_, Behaviour::Social(Social::Server { .. })) => "server",
        (_, Behaviour::Yielder(_)) => "yielder",
        (_, Behaviour::Function { .. }) => "function",
        (_, Behaviour::Invocation { number, .. }) => {
            return format!("invocation {number}, task {id}")
        }
        (_, Behaviour::Loader) => "loader",
    };
    format!("{kind} {id}")
}

/// Where a task may run.
pub fn cpus_of(s: &State, task: TaskId) -> String {
    let count = s.cpus.len();
    let cpus: Vec<String> = (0..count)
        .filter(|&cpu| s.may_run(task, cpu))
        .map(|cpu| cpu.to_string())
        .collect();
    match cpus.len() {
        all if all == count => "everywhere".into(),
        1 => format!("on CPU {} only", cpus[0]),
        _ => format!("on CPUs {}", cpus.join(", ")),
    }
}

/// The name of a queue, as in the glossary.
pub fn queue_name(queue: u64) -> String {
    let own = |name: &str| format!("{name} of CPU {}", queue & 0xffff);
    match (queue >> 32, queue >> 16) {
        (0, 1) => "FILTER".into(),
        (0, 2) => "FAIR".into(),
        (0, 3) => "the ranked queue".into(),
        (0, 4) => "the system queue".into(),
        (0, 5) => "the prompt queue".into(),
        (0, 6) => "FAIR's part outside".into(),
        (1, _) => own("FILTER"),
        (2, _) => own("FAIR"),
        (3, _) => own("the ranked queue"),
        (6, _) => own("FAIR's part outside"),
        _ if queue >> 60 == 1 => format!("the queue of group {} for quota", queue & !(1 << 60)),
        _ => format!("queue {queue:#x}"),
    }
}

fn turn_name(turn: u32) -> &'static str {
    let names = ["FAIR", "FILTER", "ranked", "system", "prompt"];
    names.get(turn as usize).copied().unwrap_or("unknown")
}

/// An entry in words; `None`: it says nothing that others do not say.
pub fn words(s: &State, entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::Event(event) => return event_words(s, *event),
        Entry::Arrives(task) => format!("{} arrives", name(s, *task)),
        Entry::Changed(task, what) => format!("{} may now {what}", name(s, *task)),
        Entry::Queued(task, queue) => format!("{} waits in {}", name(s, *task), queue_name(*queue)),
        Entry::Local(task, cpu) => {
            format!("{} waits in the local queue of CPU {cpu}", name(s, *task))
        }
        Entry::Runs(cpu, task, turn) => {
            let turn = turn_name(*turn);
            format!("CPU {cpu} runs {} for a {turn} turn", name(s, *task))
        }
        Entry::Idles(cpu) => format!("CPU {cpu} idles"),
        Entry::Sleeps(task) => format!("{} sleeps", name(s, *task)),
        Entry::Ends(task) => format!("{} has ended", name(s, *task)),
        Entry::Acts(task, act) => format!("{} {}", name(s, *task), act_words(s, *act)),
        Entry::Taken(cpu) => format!("a real-time task takes CPU {cpu}"),
        Entry::Pauses(number, cpu) => format!("callback {number} pauses on CPU {cpu}"),
        Entry::GoesOn(number, cpu) => format!("callback {number} goes on, on CPU {cpu}"),
        Entry::Loader(did) => format!("the loader {did}"),
    })
}

fn event_words(s: &State, event: Event) -> Option<String> {
    Some(match event {
        Event::Tick(cpu) => format!("CPU {cpu} has a tick"),
        Event::Kick(cpu, 1) => format!("CPU {cpu} is kicked in case it idles"),
        Event::Kick(cpu, 2) => format!("CPU {cpu} is kicked, its task preempted"),
        Event::Kick(cpu, _) => format!("CPU {cpu} is kicked"),
        Event::Wake(task) => format!("{} wakes up", name(s, task)),
        Event::Group(event) => format!("to control groups: {event:?}"),
        Event::Timer(..) => "a timer fires".into(),
        Event::Reader(nudge) => nudge_words(nudge).into(),
        Event::Hint => "the platform tells of requests".into(),
        Event::Bypass(cpu, true) => format!("the kernel serves the tasks of CPU {cpu} itself"),
        Event::Bypass(cpu, false) => format!("the scheduler has CPU {cpu} again"),
        Event::RealTimeSleeps(cpu, _) => format!("the real-time task of CPU {cpu} sleeps"),
        Event::RealTime
        | Event::Resched(_)
        | Event::Done(..)
        | Event::Arrival
        | Event::Forked(_)
        | Event::Change
        | Event::Check => return None,
    })
}

fn act_words(s: &State, act: Act) -> String {
    match act {
        Act::Run(ns) => format!("runs for {} us", ns / 1_000),
        Act::Send { to, sync: true } => format!("sends {} a message, and will sleep", name(s, to)),
        Act::Send { to, sync: false } => format!("sends {} a message", name(s, to)),
        Act::Fork { .. } => "forks".into(),
        Act::Thread { .. } => "starts a thread".into(),
        Act::Exec => "executes a program".into(),
        Act::EnterAccept { .. } => "calls accept()".into(),
        Act::LeaveAccept { fails: true, .. } => "returns from accept() without success".into(),
        Act::LeaveAccept { fails: false, .. } => "returns from accept()".into(),
        Act::Receive { got, .. } => format!("receives, result {got}"),
        Act::Stay => "disables migration".into(),
        Act::StayNoMore => "enables migration".into(),
        Act::Looks => "looks at its CPU clock".into(),
        Act::Exit => "exits".into(),
    }
}

fn nudge_words(nudge: Nudge) -> &'static str {
    match nudge {
        Nudge::Ring(0, _) => "the loader is told of an event",
        Nudge::Ring(..) => "the loader is told of completions",
        Nudge::SleepOver(_) => "a sleep of the loader is over",
        Nudge::Asked => "somebody asks the loader for statistics",
        Nudge::Hinted => "the platform tells the loader of requests",
        Nudge::Stall(_) => "the loader stalls from now on",
        Nudge::Kill => "the loader is killed",
    }
}

/// Where things are at the first finding, or at the end: CPUs, and tasks that wait.
pub fn picture(s: &State) -> Vec<String> {
    let ms = |at: u64| (at - s.booted_at.min(at)) as f64 / 1e6;
    let cpus = s.cpus.iter().take(SHOWN).enumerate();
    let cpus = cpus.map(|(number, cpu)| match cpu.current {
        _ if cpu.higher.runs.is_some() => format!("CPU {number} runs a real-time task"),
        Some(task) => format!("CPU {number} runs {}", name(s, task)),
        None => format!("CPU {number} idles since {:.3} ms", ms(cpu.idle_since)),
    });
    let live = s.live.iter().map(|&id| (id, &s.tasks[id]));
    let waiting = live.filter_map(|(id, task)| Some((id, task, task.waits_since?)));
    let waiting = waiting.take(SHOWN).map(|(id, task, since)| {
        let place = match task.place {
            Place::Queue(queue) => queue_name(queue),
            Place::Local => format!("the local queue of CPU {}", task.cpu),
            _ => "no queue".into(),
        };
        let cpus = cpus_of(s, id);
        let since = ms(since);
        format!(
            "{} waits in {place} since {since:.3} ms; it may run {cpus}",
            name(s, id)
        )
    });
    cpus.chain(waiting).collect()
}

extern "C" {
    fn model_turn_of(task: *mut TaskStruct) -> u32;
}

/// The kind of a task's turn, as the kernel half numbers it. Not while the state is held.
pub fn turn_of(task: TaskId) -> u32 {
    let task = with(|s| s.tasks[task].fields.task);
    // SAFETY: the task is one of the machine's.
    crate::race::quietly(|| unsafe { model_turn_of(task) })
}

/// Notes that a CPU runs a task, with the kind of its turn, if that is recorded.
pub fn tell_run(cpu: CpuId, task: TaskId) {
    if with(|s| s.recorded) {
        let turn = turn_of(task);
        with(|s| s.tell(Entry::Runs(cpu, task, turn)));
    }
}
