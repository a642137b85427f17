//! The watch: it looks at the machine before each callback of the kernel half and after it, and
//! has the rules compare both.

use crate::functions::{self, Function};
use crate::look::{agrees, ask, look, look_at_cpus, Answers, Look, OfCpu};
use crate::stats::{self, Stats};
use crate::{accounts, answers, begins, choices, ends, kinds, numbers, queues, sandboxes};
use sfs_kernel_model::ffi::TaskStruct;
use sfs_kernel_model::helpers::id;
use sfs_kernel_model::race;
use sfs_kernel_model::state::{with, CpuId, Event, TaskId, FIRST_PID};
use std::cell::RefCell;
use std::cmp::Reverse;

/// A callback; `enum callback` in `c/half/watch.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // they are named as the callbacks are
pub enum Callback {
    SelectCpu,
    Runnable,
    Enqueue,
    Dispatch,
    Running,
    Tick,
    Stopping,
    Quiescent,
    Yield,
    InitTask,
    ExitTask,
    Release,
    Exec,
    EnterAccept,
    LeaveAccept,
    Receive,
    Enable,
}

const CALLBACKS: [Callback; 17] = {
    use Callback::*;
    [
        SelectCpu,
        Runnable,
        Enqueue,
        Dispatch,
        Running,
        Tick,
        Stopping,
        Quiescent,
        Yield,
        InitTask,
        ExitTask,
        Release,
        Exec,
        EnterAccept,
        LeaveAccept,
        Receive,
        Enable,
    ]
};

type Watch = unsafe extern "C" fn(u32, *mut TaskStruct, u64, bool);

extern "C" {
    fn model_set_watch(watch: Option<Watch>);
}

/// What was there before a callback.
#[derive(Debug, Clone)]
pub struct Before {
    /// What the kernel half kept.
    pub look: Look,
    /// What it would have answered.
    pub answers: Answers,
    /// The number with which it was called: flags, or a CPU.
    pub number: u64,
    /// Statistics of the CPU on which it runs.
    pub stats: Stats,
    /// What is published about its function.
    pub function: Option<Function>,
    /// All CPUs, for enqueue().
    pub cpus: Vec<OfCpu>,
    /// Queues, for dispatch().
    pub queues: Option<queues::Queues>,
    /// The number of the last event.
    events: u64,
}

/// A callback that is over.
#[derive(Debug)]
pub struct Call<'a> {
    /// Which.
    pub callback: Callback,
    /// Its task; `None`: the idle one.
    pub task: Option<TaskId>,
    /// The CPU of the task, or of dispatch().
    pub cpu: CpuId,
    /// It was called within another one.
    pub is_nested: bool,
    /// Before it.
    pub was: &'a Before,
    /// After it.
    pub is: Look,
    /// The same, asked.
    pub answers: Answers,
    /// The number with which it ended.
    pub number: u64,
    /// Statistics of the CPU on which it has run.
    pub stats: Stats,
    /// CPUs that it has kicked, with flags.
    pub kicks: Vec<(CpuId, u64)>,
}

impl Call<'_> {
    /// A rule does not hold.
    pub fn finding(&self, what: &str) {
        let whom = self.task.map_or("no task".to_owned(), |task| {
            with(|s| sfs_kernel_model::timeline::name(s, task))
        });
        let (callback, cpu) = (self.callback, self.cpu);
        with(|s| s.finding(format!("{callback:?} of {whom} on CPU {cpu}: {what}")));
    }

    /// `what` is to be `expected`.
    pub fn equal(&self, what: &str, is: i64, expected: i64) {
        if is != expected {
            self.finding(&format!("{what} is {is}, and should be {expected}"));
        }
    }
}

thread_local! {
    static BEFORE: RefCell<Vec<Before>> = const { RefCell::new(Vec::new()) };
}

/// From now on callbacks are watched, if they do not interleave and the kernel half can be.
pub fn begin() {
    BEFORE.with(|all| all.borrow_mut().clear());
    if agrees() {
        numbers::check();
        check_what_was_found();
        let (is_plain, odd) = (!race::is_on(), with(|s| s.odd.of));
        let only = with(|s| s.groups.load.only_sandboxes);
        // Hints end invocations as well, and so do changes of sandboxes.
        ends::follow(is_plain && odd.hints_ns == 0 && odd.no_memory_of == 0 && !only);
        // SAFETY: the function is there as long as the program.
        unsafe { model_set_watch(Some(watched)) };
    }
}

/// No scheduler was there before, so only processes that were forked since are functions.
fn check_what_was_found() {
    let found: Vec<_> = with(|s| {
        let live = s.live.iter().map(|&task| (task, &s.tasks[task]));
        live.map(|(task, t)| (task, t.fields.task, t.cpu, !t.promise.is_outside))
            .collect()
    });
    for (task, pointer, cpu, is_forked) in found {
        let look = look(pointer, cpu);
        let is_right = look.found_at_load == 0 && look.forked >= i64::from(is_forked);
        if look.has_context != 0 && !is_right {
            with(|s| {
                s.finding(format!(
                    "task {task}, found at load, is taken for another kind"
                ))
            });
        }
    }
}

/// Callbacks are not watched any more.
pub fn end() {
    // SAFETY: takes a plain value.
    unsafe { model_set_watch(None) };
}

unsafe extern "C" fn watched(callback: u32, task: *mut TaskStruct, number: u64, is_over: bool) {
    let callback = CALLBACKS[callback as usize];
    if race::is_on() || !with(|s| s.odd.is_loaded) {
        return;
    }
    let is_idle = |p: *mut TaskStruct| {
        // SAFETY: the kernel half has this pointer from the model.
        p.is_null() || unsafe { sfs_kernel_model::ffi::model_pid(p) } < FIRST_PID
    };
    let known = (!is_idle(task)).then(|| id(task));
    let task = if task.is_null() {
        with(|s| s.swapper)
    } else {
        task
    };
    if is_over {
        return over(callback, known, task, number);
    }
    let cpu = cpu_of(callback, known, number);
    use Callback::{Dispatch, Enqueue, SelectCpu, Stopping, Tick};
    let asks = matches!(callback, Dispatch | Enqueue | SelectCpu | Stopping | Tick);
    let answers = if asks {
        ask(task, cpu)
    } else {
        Answers::default()
    };
    let cpus = match callback {
        Enqueue => look_at_cpus(with(|s| s.cpus.len())),
        _ => Vec::new(),
    };
    let look = look(task, cpu);
    let queues = matches!(callback, Callback::Dispatch).then(|| queues::all(cpu));
    let before = Before {
        look,
        answers,
        number,
        stats: stats::here(),
        function: functions::published(look.i_function as u64),
        cpus,
        queues,
        events: with(|s| s.counter),
    };
    BEFORE.with(|all| all.borrow_mut().push(before));
}

fn cpu_of(callback: Callback, task: Option<TaskId>, number: u64) -> CpuId {
    match (callback, task) {
        (Callback::Dispatch | Callback::Release, _) => number as CpuId,
        (_, Some(task)) => with(|s| s.tasks[task].cpu),
        (_, None) => with(|s| s.here),
    }
}

fn over(callback: Callback, known: Option<TaskId>, task: *mut TaskStruct, number: u64) {
    let Some(was) = BEFORE.with(|all| all.borrow_mut().pop()) else {
        return;
    };
    let cpu = was.look.cpu as CpuId;
    let kicks = with(|s| {
        let since = was.events;
        let kick = |event: &Reverse<(u64, u64, Event)>| match event.0 {
            (_, n, Event::Kick(cpu, flags)) if n > since => Some((n, cpu, flags)),
            _ => None,
        };
        let mut kicks: Vec<_> = s.events.iter().filter_map(kick).collect();
        kicks.sort_unstable();
        kicks
            .into_iter()
            .map(|(_, cpu, flags)| (cpu, flags))
            .collect()
    });
    let call = Call {
        callback,
        task: known,
        cpu,
        is_nested: BEFORE.with(|all| !all.borrow().is_empty()),
        was: &was,
        is: look(task, cpu),
        answers: ask(task, cpu),
        number,
        stats: stats::here(),
        kicks,
    };
    let makes_context = matches!(callback, Callback::Dispatch | Callback::InitTask);
    if was.look.has_context == 0 && !makes_context {
        return;
    }
    answers::check(&call);
    if matches!(callback, Callback::Runnable | Callback::Tick) {
        sandboxes::check(&call);
    }
    accounts::check(&call);
    match callback {
        Callback::Enqueue => kinds::check(&call),
        Callback::Dispatch => choices::check(&call),
        Callback::Running => begins::check(&call),
        _ => {}
    }
}
