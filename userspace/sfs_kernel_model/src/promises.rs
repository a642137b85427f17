//! The waits that docs/reliability.md promises, in a form that holds on every drawn machine.
//!
//! A kernel thread that wakes up goes before all work but that of its kind and that of daemons. So
//! it waits for that, and for a tick at most. A process with credit goes
//! before functions without. Machines with real-time tasks promise nothing: those may have every
//! CPU for any time.

use crate::ffi;
use crate::state::{Place, State, TaskId};

/// Interrupts and switches.
const SLACK_NS: u64 = 500_000;
/// A turn in FAIR that is due: a part of SFS_DEFAULT_FAIR_MAX_WAIT_NS.
const DUE_TURN_NS: u64 = 100_000_000 / 25;
/// Outside work that gets less than this part of the machine waits for less than so long, ns.
const OUTSIDE_NS: u64 = 60_000_000;
const OUTSIDE_PART: u64 = 8;
/// `enum turn`.
const TURN_FAIR: u32 = 0;
const TURN_FILTER: u32 = 1;
const TURN_SYSTEM: u32 = 3;

/// What the promises depend on, of a machine.
#[derive(Debug, Default)]
pub struct Promises {
    /// The machine promises waits.
    are_made: bool,
    /// A tick, ns.
    tick_ns: u64,
    /// CPU time of outside work and of short turns, ns.
    short_ns: u64,
}

impl Promises {
    /// Those of a machine that makes them, or not, with ticks of `tick_ns`.
    pub fn new(are_made: bool, tick_ns: u64) -> Self {
        Self {
            are_made,
            tick_ns,
            ..Self::default()
        }
    }
}

/// The same of a task.
#[derive(Debug, Default)]
pub struct Promise {
    /// It is no function: a kernel thread, or there before load.
    pub is_outside: bool,
    /// A kernel thread.
    pub is_kernel: bool,
    /// It has had turns by rank.
    pub was_ranked: bool,
    /// While it waits and a promise covers that: since when, and `short_ns` then.
    since: Option<(u64, u64)>,
    /// It waits after a wake-up.
    is_woken: bool,
}

/// A task has had `delta` ns of CPU time.
pub fn count(s: &mut State, task: TaskId, delta: u64) {
    let t = &mut s.tasks[task];
    let turn = t.context.as_ref().map_or(TURN_FAIR, |context| {
        // SAFETY: it is the kernel half's context of a task.
        unsafe { ffi::model_turn_in(context.place()) }
    });
    if t.promise.is_outside || turn >= TURN_SYSTEM {
        s.promises.short_ns += delta;
    }
}

/// A task wakes up.
pub fn wakes(s: &mut State, task: TaskId) {
    let promise = &mut s.tasks[task].promise;
    if s.promises.are_made && promise.is_outside {
        promise.since = Some((s.now, s.promises.short_ns));
        promise.is_woken = true;
    }
}

/// A task has lost its CPU and wants more. A promise covers that for kernel threads.
pub fn preempted(s: &mut State, task: TaskId) {
    let promise = &mut s.tasks[task].promise;
    if s.promises.are_made && promise.is_kernel {
        promise.since = Some((s.now, s.promises.short_ns));
        promise.is_woken = false;
    }
}

/// A task waits no more, or is queued anew for another reason than its wake-up.
pub fn forget(s: &mut State, task: TaskId) {
    s.tasks[task].promise.since = None;
}

/// A task begins to run.
pub fn runs(s: &mut State, task: TaskId) {
    let Some((since, short_before)) = s.tasks[task].promise.since.take() else {
        return;
    };
    check_wait(s, task, since, short_before);
    check_share(s, task, since, short_before);
}

/// The same for all tasks that still wait, and for processes behind work in FAIR.
pub fn check(s: &mut State) {
    if !s.promises.are_made {
        return;
    }
    let live: Vec<TaskId> = s.live.iter().copied().collect();
    for &task in &live {
        if let Some((since, short_before)) = s.tasks[task].promise.since {
            check_wait(s, task, since, short_before);
            check_share(s, task, since, short_before);
        }
    }
    check_credit(s, &live);
}

/// Outside work goes before functions, up to half of each CPU. So none waits for long while outside
/// work gets much less of the machine.
fn check_share(s: &mut State, task: TaskId, since: u64, short_before: u64) {
    let waited = s.now - since;
    let others = s.promises.short_ns - short_before;
    let may_use_all = (0..s.cpus.len()).all(|cpu| s.may_run(task, cpu));
    let is_long = waited > OUTSIDE_NS && s.tasks[task].allowed_since <= since;
    if !is_long || !may_use_all || others > waited * s.cpus.len() as u64 / OUTSIDE_PART {
        return;
    }
    s.tasks[task].promise.since = None;
    let t = &s.tasks[task];
    let kind = match t.promise.is_kernel {
        true => "a kernel thread",
        false => "outside of functions",
    };
    s.finding(format!(
        "task {task}, {kind} ({:?}), waits for {} us, and outside work has had {} us of {} CPUs \
         meanwhile; now in {:x?}",
        t.behaviour,
        waited / 1_000,
        others / 1_000,
        s.cpus.len(),
        t.place,
    ));
}

fn check_wait(s: &mut State, task: TaskId, since: u64, short_before: u64) {
    let (waited, others) = (s.now - since, s.promises.short_ns - short_before);
    let bound = s.promises.tick_ns + others + SLACK_NS;
    let promise = &s.tasks[task].promise;
    if waited <= bound || !promise.is_kernel || !promise.is_woken {
        return;
    }
    s.tasks[task].promise.since = None;
    let t = &s.tasks[task];
    s.finding(format!(
        "task {task}, a kernel thread ({:?}), waits for {} us after its wake-up, and others before it \
         have had {} us; now in {:x?}",
        t.behaviour,
        waited / 1_000,
        others / 1_000,
        t.place,
    ));
}

/// A function without credit does not keep its CPU while a process with credit waits that may run
/// there (only with `--policy sfs`).
fn check_credit(s: &mut State, live: &[TaskId]) {
    // SAFETY: reads the kernel half's variables.
    if !unsafe { ffi::model_serves_filter() } {
        return;
    }
    let bound = 2 * s.promises.tick_ns + 2 * DUE_TURN_NS + SLACK_NS;
    let long_ago = s.now.saturating_sub(bound);
    let hogs: Vec<(usize, TaskId)> = (0..s.cpus.len())
        .filter(|&cpu| s.cpus[cpu].began <= long_ago)
        .filter_map(|cpu| Some((cpu, s.cpus[cpu].current?)))
        .filter(|&(_, task)| !s.tasks[task].promise.is_outside && turn(s, task) == TURN_FAIR)
        .collect();
    if hogs.is_empty() {
        return;
    }
    for &task in live {
        let waits = matches!(s.tasks[task].place, Place::Queue(_))
            && s.tasks[task].waits_since.is_some_and(|at| at <= long_ago)
            && s.tasks[task].allowed_since <= long_ago
            && turn(s, task) == TURN_FILTER
            && queued_at(s, task) <= long_ago;
        let cpu = hogs.iter().find(|&&(cpu, _)| waits && s.may_run(task, cpu));
        if let Some(&(cpu, hog)) = cpu {
            s.finding(format!(
                "task {task} has credit and has waited for {} us in {:x?}, while task {hog} without \
                 credit keeps CPU {cpu}, for {} us now",
                (s.now - queued_at(s, task)) / 1_000,
                s.tasks[task].place,
                (s.now - s.cpus[cpu].began) / 1_000,
            ));
        }
    }
}

fn turn(s: &State, task: TaskId) -> u32 {
    let context = s.tasks[task].context.as_ref();
    // SAFETY: it is the kernel half's context of a task.
    context.map_or(u32::MAX, |of| unsafe { ffi::model_turn_in(of.place()) })
}

fn queued_at(s: &State, task: TaskId) -> u64 {
    let context = s.tasks[task].context.as_ref();
    // SAFETY: the same.
    context.map_or(u64::MAX, |of| unsafe {
        ffi::model_queued_at_in(of.place())
    })
}
