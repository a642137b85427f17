//! What tasks do while they run, as the current task of their CPU: they wake up others, fork,
//! execute, accept, receive, disable migration, and exit.

use crate::ffi;
use crate::group_moves;
use crate::program::in_program;
use crate::race::{self, Held};
use crate::replay;
use crate::sched::{wake_up, wake_up_sync};
use crate::social::first_turn;
use crate::state::{with, CpuId, Place, State, TaskId, FIRST_PID};
use crate::stay;
use crate::task_work;
use crate::tasks::{init_task, new_fields, push_task, sleeps};
use crate::timeline::Entry;
use crate::workload::{between, exponential, Behaviour, Then};
use sfs_kernel_draws::numbers::US;
use std::collections::VecDeque;

/// PF_EXITING.
const EXITING: u32 = 4;

/// Something that a task does on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Uses so many ns of CPU time.
    Run(u64),
    /// Sends a message, which ends the other's sleep.
    Send {
        /// The receiver.
        to: TaskId,
        /// The sender says that it is about to sleep: WF_SYNC.
        sync: bool,
    },
    /// Forks a process with so much CPU time, us.
    Fork {
        /// When the process sends its parent a message.
        tells: Tells,
        /// Its CPU time.
        runs_us: u64,
    },
    /// Starts a thread of its process with so much CPU time, us.
    Thread {
        /// Its CPU time.
        runs_us: u64,
    },
    /// Executes another program.
    Exec,
    /// Calls accept().
    EnterAccept {
        /// 0, 1: TCP; 2: Unix.
        protocol: u32,
    },
    /// accept() returns.
    LeaveAccept {
        /// 0, 1: TCP; 2: Unix.
        protocol: u32,
        /// Without a connection.
        fails: bool,
    },
    /// A receive returns.
    Receive {
        /// 0: IPv4; 1: IPv6; 2: Unix.
        protocol: u32,
        /// Bytes; 0: the end; negative: an error.
        got: i32,
    },
    /// migrate_disable().
    Stay,
    /// migrate_enable().
    StayNoMore,
    /// An invocation of a trace looks how much CPU time it has used.
    Looks,
    /// do_exit() begins.
    Exit,
}

/// When a process sends its parent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tells {
    /// Never.
    #[default]
    Nothing,
    /// When it executes a program, or ends: vfork().
    Exec,
    /// When it ends: wait().
    End,
}

/// A task's relations.
#[derive(Debug, Default)]
pub struct Life {
    /// What it does behind the CPU time of this turn.
    pub script: VecDeque<Act>,
    /// Messages that have arrived while it did not wait for one.
    pub mail: u32,
    /// It has been forked, and has not been woken up yet.
    pub is_new: bool,
    /// It has not had its first turn yet.
    pub is_unborn: bool,
    /// Migration is disabled.
    pub stays: bool,
    /// Since when, ns since boot.
    pub stays_since: u64,
    /// When its last callback at the return to user mode ended.
    pub returned_at: u64,
    /// The program that kicked it there has not confined it to its CPU yet.
    pub may_be_confined: bool,
    /// The leader of its process, if that is another task.
    leader: Option<TaskId>,
    /// Threads of its process, besides itself, if it is the leader.
    threads: u32,
    /// Its parent, and when it is told.
    parent: Option<(TaskId, Tells)>,
    /// It is in do_exit().
    exits: bool,
}

/// A turn begins: its first CPU time, and what follows.
pub fn plan(s: &mut State, task: TaskId) {
    let behaviour = s.tasks[task].behaviour;
    let is_unborn = std::mem::take(&mut s.tasks[task].life.is_unborn);
    let (ns, mut acts) = match behaviour {
        Behaviour::Social(social) => {
            let random = s.own_random(task);
            let ns = social.first(random);
            (ns, social.acts(task, random))
        }
        Behaviour::Function { runs_us, .. } if is_unborn && s.habits.has_families => {
            first_turn(s.own_random(task), runs_us)
        }
        Behaviour::Invocation { .. } => replay::plan(s, task),
        _ => (behaviour.next_turn(s.own_random(task)), VecDeque::new()),
    };
    let ns = stay::plan(s, task, ns, &mut acts);
    if behaviour.ends() && s.habits.has_families {
        acts.push_back(Act::Exit);
        acts.push_back(Act::Run(exponential(s.own_random(task), 30 * US)));
    }
    s.tasks[task].left_ns = ns;
    s.tasks[task].life.script = acts;
}

/// A task is killed: what it would have done otherwise, it does not do.
pub fn cut_short(s: &mut State, task: TaskId) {
    let life = &mut s.tasks[task].life;
    life.script.clear();
    if life.stays {
        life.script.push_back(Act::StayNoMore);
    }
    life.script.extend([Act::Exit, Act::Run(10 * US)]);
}

/// The current task of a CPU has had the CPU time of one part of its turn. It acts up to the next
/// part. Returns what follows.
pub fn step(cpu: CpuId, task: TaskId) -> Then {
    while let Some(act) = with(|s| s.tasks[task].life.script.pop_front()) {
        if let Act::Run(ns) = act {
            with(|s| s.tasks[task].left_ns = ns);
            return Then::GoesOn;
        }
        with(|s| s.tell(Entry::Acts(task, act)));
        perform(cpu, task, act);
    }
    if task_work::begins_exit(task) {
        return Then::GoesOn;
    }
    with(|s| {
        let t = &mut s.tasks[task];
        if awaits_mail(t.behaviour) && t.life.mail > 0 {
            t.life.mail -= 1;
            plan(s, task);
            return Then::GoesOn;
        }
        t.behaviour.then()
    })
}

/// Returns true if such a task sleeps until it gets a message.
pub fn awaits_mail(behaviour: Behaviour) -> bool {
    matches!(behaviour, Behaviour::Social(social) if social.awaits_mail())
}

/// A message has come for a task that has just fallen asleep. Returns true if it ends the sleep.
pub fn takes_mail(s: &mut State, task: TaskId) -> bool {
    let t = &mut s.tasks[task];
    let takes = awaits_mail(t.behaviour) && t.life.mail > 0;
    t.life.mail -= u32::from(takes);
    takes
}

fn perform(cpu: CpuId, task: TaskId, act: Act) {
    let program = |program: unsafe extern "C" fn(u32, i32), protocol, value| {
        // SAFETY: takes plain values; the task is current on its CPU.
        in_program(cpu, || unsafe { program(protocol, value) })
    };
    match act {
        Act::Run(_) => unreachable!("not an act"),
        Act::Send { to, sync } => send(cpu, to, sync),
        Act::Fork { tells, runs_us } => fork(cpu, task, tells, runs_us),
        Act::Thread { runs_us } => thread(cpu, task, runs_us),
        Act::Exec => exec(cpu, task),
        Act::EnterAccept { protocol } => program(ffi::model_enter_accept, protocol, 0),
        Act::LeaveAccept { protocol, fails } => program(
            ffi::model_leave_accept,
            protocol,
            if fails { -11 } else { 0 },
        ),
        Act::Receive { protocol, got } => program(ffi::model_leave_receive, protocol, got),
        Act::Stay => with(|s| stay::disable(s, task)),
        Act::StayNoMore => stay::enable(cpu, task),
        Act::Looks => with(|s| replay::looks(s, task)),
        Act::Exit => exit(cpu, task),
    }
}

/// Wakes a task up that waits for a message, or leaves it one: a pipe, a socket, a futex.
fn send(cpu: CpuId, to: TaskId, sync: bool) {
    let _waking = race::wakes(to);
    let waits = with(|s| {
        let is_asleep = sleeps(s, to);
        let t = &mut s.tasks[to];
        let waits = is_asleep && awaits_mail(t.behaviour) && !t.stops;
        t.life.mail += u32::from(!waits && t.place != Place::Dead);
        if waits {
            plan(s, to);
        }
        waits
    });
    match (waits, sync) {
        (false, _) => {}
        (true, true) => wake_up_sync(cpu, to),
        (true, false) => wake_up(cpu, to, false),
    }
}

/// kernel_clone(): the child begins on the parent's CPU, with its affinity and weight.
fn clone(cpu: CpuId, task: TaskId, runs_us: u64, is_thread: bool) -> Option<(TaskId, Held)> {
    // cgroup_css_set_fork() waits until nobody moves.
    group_moves::finish_move(task);
    let child = with(|s| {
        let fields = new_fields(FIRST_PID + s.tasks.len() as i32, s.monotonic());
        let behaviour = Behaviour::Function {
            turns: between(s.own_random(task), 1, 3),
            runs_us: runs_us.max(1),
        };
        // SAFETY: both tasks are the machine's.
        unsafe { ffi::model_clone(s.tasks[task].fields.task, fields.task, is_thread) };
        s.groups.birthplace = Some(s.groups.members[task].css);
        let child = push_task(s, fields, behaviour, cpu, None);
        s.tasks[child].life.is_new = true;
        s.tasks[child].life.is_unborn = !is_thread;
        child
    });
    let held = race::pi_lock(child); // nobody finds it before it is complete
    if !init_task(child, true) {
        with(|s| s.forget(child));
        return None;
    }
    let fails = with(|s| between(s.own_random(task), 0, 40) == 0);
    if fails {
        // A later step of copy_process() fails: scx_cancel_fork().
        let pointer = with(|s| s.tasks[child].fields.task);
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_cancel_task(pointer) };
        with(|s| s.forget(child));
        return None;
    }
    Some((child, held))
}

/// wake_up_new_task().
fn start(cpu: CpuId, child: TaskId) {
    with(|s| {
        s.tasks[child].life.is_new = false;
        plan(s, child);
    });
    wake_up(cpu, child, true);
}

fn fork(cpu: CpuId, task: TaskId, tells: Tells, runs_us: u64) {
    match clone(cpu, task, runs_us, false) {
        Some((child, _held)) => {
            with(|s| s.tasks[child].life.parent = Some((task, tells)));
            start(cpu, child);
        }
        // The parent does not wait for a process that it does not have.
        None => with(|s| s.tasks[task].life.mail += u32::from(tells != Tells::Nothing)),
    }
}

fn thread(cpu: CpuId, task: TaskId, runs_us: u64) {
    let leader = with(|s| s.tasks[task].life.leader.unwrap_or(task));
    let Some((child, _held)) = clone(cpu, task, runs_us, true) else {
        return;
    };
    with(|s| {
        s.tasks[child].life.leader = Some(leader);
        s.tasks[leader].life.threads += 1;
    });
    start(cpu, child);
}

/// begin_new_exec() and exec_binprm(): the parent of a vfork() goes on, and then the program on
/// the tracepoint runs.
fn exec(cpu: CpuId, task: TaskId) {
    tell(cpu, task, Tells::Exec);
    let (pointer, name) = with(|s| (s.tasks[task].fields.task, between(s.own_random(task), 0, 9)));
    in_program(cpu, || {
        // SAFETY: the task is one of the machine's, and current on its CPU.
        unsafe { ffi::model_exec(pointer, name as u32) }
    });
}

/// do_exit() begins: exit_signals(), mm_release() and, later, exit_notify().
fn exit(cpu: CpuId, task: TaskId) {
    with(|s| {
        s.tasks[task].life.exits = true;
        replay::exits(s, task);
        s.groups.members[task].exits = true;
        // SAFETY: the task's memory lives as long as the machine.
        unsafe { *s.tasks[task].fields.flags |= EXITING };
    });
    task_work::task_work_run(task);
    tell(cpu, task, Tells::Exec);
    tell(cpu, task, Tells::End);
}

/// complete_vfork_done() or __wake_up_parent(), which wakes up synchronously.
fn tell(cpu: CpuId, task: TaskId, what: Tells) {
    let parent = with(|s| {
        let parent = &mut s.tasks[task].life.parent;
        let (to, _) = parent.filter(|&(_, tells)| tells == what)?;
        *parent = None;
        Some(to)
    });
    if let Some(to) = parent {
        send(cpu, to, what == Tells::End);
    }
}

impl State {
    /// The last of a task: exit_task(), and its context is freed. That of a leader lasts as long
    /// as its process (release_task()).
    pub fn forget(&mut self, task: TaskId) {
        replay::gone(self, task);
        self.tasks[task].place = Place::Dead;
        self.live.remove(&task);
        if self.tasks[task].life.threads == 0 {
            self.tasks[task].context = None;
        }
        let Some(leader) = self.tasks[task].life.leader else {
            return;
        };
        let of = &mut self.tasks[leader];
        of.life.threads -= 1;
        if of.life.threads == 0 && of.place == Place::Dead {
            of.context = None;
        }
    }
}
