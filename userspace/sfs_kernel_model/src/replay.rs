//! Invocations of a trace: processes that compute and block as the trace says, and what is measured
//! of them.
//!
//! They follow `faas_replay`: the demand of a process is measured by its own CPU clock, so its
//! start counts as part of the demand, and its exit comes behind it.

use crate::life::Act;
use crate::state::{Cpu, State, TaskId};
use crate::workload::{between, Behaviour};
use std::collections::VecDeque;

/// CPU time that a process uses between two parts of its work at least, ns.
const LEAST_NS: u64 = 1_000;

/// A step of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Computes until it has used so much CPU time in all since its fork, ns.
    Cpu(u64),
    /// Sleeps for so many ns.
    Sleep(u64),
}

/// An invocation, and its measurements. Times are ns since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// The next one.
    next: usize,
    /// When it was forked.
    pub forked_at: u64,
    /// When it first had a CPU.
    pub started_at: Option<u64>,
    /// When it had done its work.
    pub ended_at: Option<u64>,
    /// Its process is gone.
    pub is_gone: bool,
    /// CPU time of its process, with its exit, ns.
    pub cpu_ns: u64,
    /// CPU time up to the end of its work, ns.
    pub worked_ns: u64,
    /// How often it blocked.
    pub blocked: u64,
    /// For how long it wanted to block, ns.
    pub blocked_ns: u64,
    /// How often it lost its CPU while it was runnable.
    pub preempted: u64,
}

impl Invocation {
    /// One that has not been forked.
    pub fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }
}

/// What the processes of a replay cost besides their work, in ns on a machine with one busy CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// CPU time of a new process until it works: page faults of the copied memory.
    pub start_ns: u64,
    /// CPU time of a process behind its work: do_exit().
    pub exit_ns: u64,
    /// A sleep lasts longer than it should: `timer_slack_ns`, 50 us.
    pub slack_ns: u64,
    /// CPUs share one stream of instructions and take turns of so many ns; 0: they are real. So
    /// instructions take as many times as long as CPUs are busy (vm/README.md), and what happens
    /// while others have their turns is seen late.
    pub turn_ns: u64,
}

/// A replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The invocations, in the order of the trace.
    pub invocations: Vec<Invocation>,
    /// Processes that are gone.
    pub gone: usize,
    /// What they cost.
    pub costs: Costs,
}

/// The time that takes `ns` while no other CPU is busy, with those that are now.
pub fn stretched(s: &State, ns: u64) -> u64 {
    match turn_ns(s) {
        0 => ns,
        _ => ns * busy(s),
    }
}

/// How late a CPU sees what happens now: in its own turn at once, in that of another one when the
/// turns of the others are over.
pub fn lateness(s: &mut State) -> u64 {
    let (turn, busy) = (turn_ns(s), busy(s));
    if turn == 0 || between(&mut s.random, 1, busy) == 1 {
        return 0;
    }
    between(&mut s.random, 0, (busy - 1) * turn)
}

fn turn_ns(s: &State) -> u64 {
    s.replay.as_ref().map_or(0, |replay| replay.costs.turn_ns)
}

/// Number of CPUs that run a task, at least 1.
fn busy(s: &State) -> u64 {
    let is_busy = |cpu: &&Cpu| cpu.current.is_some() || cpu.higher.runs.is_some();
    (s.cpus.iter().filter(is_busy).count() as u64).max(1)
}

/// The invocation that a task is.
fn of(s: &mut State, task: TaskId) -> Option<&mut Invocation> {
    let Behaviour::Invocation { number, .. } = s.tasks[task].behaviour else {
        return None;
    };
    s.replay.as_mut()?.invocations.get_mut(number as usize)
}

/// CPU time of a task, ns.
fn cpu_ns(s: &State, task: TaskId) -> u64 {
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.cpu_time_ns }
}

/// What a process does up to its next sleep, or to its end.
pub fn plan(s: &mut State, task: TaskId) -> (u64, VecDeque<Act>) {
    let used = cpu_ns(s, task);
    let costs = s.replay.as_ref().map_or(Costs::default(), |r| r.costs);
    let least = match used {
        0 => stretched(s, costs.start_ns),
        _ => 0,
    };
    let Some(one) = of(s, task) else {
        return (LEAST_NS, VecDeque::new());
    };
    let mut target = used + least.max(LEAST_NS);
    while let Some(Step::Cpu(until)) = one.steps.get(one.next) {
        target = target.max(*until);
        one.next += 1;
    }
    let is_last = one.next == one.steps.len();
    if let Behaviour::Invocation { is_last: last, .. } = &mut s.tasks[task].behaviour {
        *last = is_last;
    }
    (target - used, [Act::Looks].into())
}

/// A process looks at its CPU clock, after the turns of other CPUs, and ends its turn.
pub fn looks(s: &mut State, task: TaskId) {
    let late = lateness(s);
    let exit = s.replay.as_ref().map_or(0, |r| r.costs.exit_ns);
    let exit = stretched(s, exit).max(LEAST_NS);
    let ends = s.tasks[task].behaviour.ends();
    let script = &mut s.tasks[task].life.script;
    script.extend((late > 0).then_some(Act::Run(late)));
    if ends {
        script.extend([Act::Exit, Act::Run(exit)]);
    }
}

/// A process has fallen asleep: for how long, ns; `None`: it has ended, or is no invocation.
pub fn sleep(s: &mut State, task: TaskId) -> Option<u64> {
    let slack_ns = s.replay.as_ref()?.costs.slack_ns;
    let one = of(s, task)?;
    let &Step::Sleep(ns) = one.steps.get(one.next)? else {
        return None;
    };
    one.next += 1;
    one.blocked += 1;
    one.blocked_ns += ns;
    Some(ns + slack_ns)
}

/// A process begins to run.
pub fn runs(s: &mut State, task: TaskId) {
    let now = s.now;
    if let Some(one) = of(s, task) {
        one.started_at = one.started_at.or(Some(now));
    }
}

/// A process that is runnable loses its CPU to another: `nivcsw`.
pub fn preempted(s: &mut State, task: TaskId) {
    if let Some(one) = of(s, task) {
        one.preempted += 1;
    }
}

/// A process has done its work.
pub fn exits(s: &mut State, task: TaskId) {
    let (now, used) = (s.now, cpu_ns(s, task));
    if let Some(one) = of(s, task) {
        one.ended_at = Some(now);
        one.worked_ns = used;
    }
}

/// A process is gone.
pub fn gone(s: &mut State, task: TaskId) {
    let used = cpu_ns(s, task);
    if let Some(one) = of(s, task) {
        one.cpu_ns = used;
        one.is_gone = true;
        if let Some(replay) = &mut s.replay {
            replay.gone += 1;
        }
    }
}
