//! Callbacks on different CPUs that interleave: each event runs as a fiber (`sfs_fibers`), pauses
//! at points of the kernel half that the seed chooses (`c/points.h`), and holds the locks that the
//! kernel holds. Without fibers nothing here has an effect.

use crate::state::{with, CpuId, Event, State, TaskId};
use crate::timeline::Entry;
use sfs_fibers::{self as fibers, Lock, Totals};
use std::cell::Cell;

thread_local! {
    /// Changes of control groups that have begun.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// All callbacks come to their end; no more interleave. Returns how often they did.
pub fn end() -> Option<Totals> {
    finish();
    fibers::remove()
}

/// All callbacks come to their end, as if time stood still.
pub fn finish() {
    points(false);
    if let Err(stuck) = fibers::finish() {
        with(|s| s.finding(format!("the model has a deadlock: {stuck}")));
    }
}

/// Returns true if callbacks interleave.
pub fn is_on() -> bool {
    fibers::is_on()
}

/// Lets the kernel half pause from now on, or not.
fn points(may: bool) {
    if let Some((counts, access)) = fibers::until_pause() {
        // SAFETY: takes plain values.
        unsafe { crate::ffi::model_set_pause(may, counts, access) };
    }
}

/// An event happens: `work` proceeds up to its first pause. It occupies `cpu`; `None`: any. Its
/// callbacks for control groups hold cgroup_mutex, and a timer's callback runs once at a time.
pub fn happens(event: Event, cpu: Option<CpuId>, work: impl FnOnce() + 'static) {
    if !is_on() {
        return work();
    }
    points(true);
    fibers::spawn(move || {
        let lock_of_event = match event {
            Event::Timer(timer, _) => Some(Lock::Timer(timer)),
            _ => None,
        };
        let _timer = lock_of_event.map(lock);
        let cpus = with(|s| s.cpus.len() as u64);
        let cpu = cpu.unwrap_or_else(|| fibers::between(0, cpus - 1) as usize);
        let _cpu = lock(Lock::Cpu(cpu));
        with(|s| s.here = cpu);
        work();
    });
    points(false);
}

/// A callback that has paused goes on. Returns its number; `None`: there is none.
pub fn proceeds() -> Option<u64> {
    points(true);
    let id = fibers::proceed_next();
    points(false);
    id
}

/// When the next callback goes on, ns.
pub fn next_at() -> Option<u64> {
    fibers::next_at()
}

/// The CPU on which an event happens, of which a part has drawn `drawn`: a fiber stays where it is.
pub fn place(s: &mut State, drawn: CpuId) -> CpuId {
    if fibers::current().is_none() {
        s.here = drawn;
    }
    s.here
}

/// What belongs to a run of a program, while others run.
struct Saved {
    here: CpuId,
    directs: Option<TaskId>,
    in_dispatch: bool,
}

fn save() -> Saved {
    with(|s| Saved {
        here: s.here,
        directs: s.directs.take(),
        in_dispatch: std::mem::take(&mut s.in_dispatch),
    })
}

fn restore(saved: &Saved) {
    with(|s| {
        s.here = saved.here;
        s.directs = saved.directs;
        s.in_dispatch = saved.in_dispatch;
    });
}

/// A point at which the seed lets the callback pause.
#[no_mangle]
extern "C" fn model_pause() {
    points(true);
    let Some(id) = fibers::current() else { return };
    let saved = save();
    let (now, next) = with(|s| {
        s.tell(Entry::Pauses(id, saved.here));
        (s.now, s.events.peek().map(|event| event.0 .0))
    });
    fibers::pause(now, next);
    restore(&saved);
    with(|s| s.tell(Entry::GoesOn(id, saved.here)));
}

/// A helper of the kernel half begins.
pub fn point() {
    // SAFETY: takes nothing.
    unsafe { crate::ffi::model_point() };
}

/// Asks the kernel half for something that no callback does: nothing pauses meanwhile.
pub fn quietly<T>(ask: impl FnOnce() -> T) -> T {
    // SAFETY: takes plain values.
    let before = unsafe { crate::ffi::model_let_pause(false) };
    let answer = ask();
    // SAFETY: the same.
    unsafe { crate::ffi::model_let_pause(before) };
    answer
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Held(Option<Lock>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            fibers::unlock(lock);
        }
    }
}

/// Takes a lock, as soon as nobody else has it.
pub fn lock(lock: Lock) -> Held {
    if fibers::current().is_none() {
        return Held(None);
    }
    while !fibers::try_lock(lock) {
        let saved = save();
        fibers::wait_for(lock);
        restore(&saved);
    }
    Held(Some(lock))
}

/// raw_spin_rq_lock().
pub fn run_queue(cpu: CpuId) -> Held {
    lock(Lock::RunQueue(cpu))
}

/// try_to_wake_up() begins: pi_lock, and a task that is about to sleep has left its CPU.
pub fn wakes(task: TaskId) -> Held {
    let held = pi_lock(task);
    drop(lock(Lock::OnCpu(task)));
    held
}

/// `p->pi_lock`.
pub fn pi_lock(task: TaskId) -> Held {
    lock(Lock::Wakeup(task))
}

/// `p->on_cpu`, until the switch is over.
pub fn on_cpu(task: TaskId) -> Held {
    lock(Lock::OnCpu(task))
}

/// task_rq_lock(): pi_lock and the lock of the task's run queue. In `__schedule()`
/// migrate_disable_switch() has the latter only, and changes the task nevertheless.
pub fn task_rq(task: TaskId) -> (Held, Held) {
    let own = with(|s| s.tasks[task].cpu);
    if fibers::owns(Lock::RunQueue(own)) {
        return (Held(None), run_queue(own));
    }
    let wakeup = pi_lock(task);
    loop {
        let cpu = with(|s| s.tasks[task].cpu);
        let held = run_queue(cpu);
        let is_there = with(|s| s.tasks[task].cpu == cpu);
        if is_there && !fibers::is_locked(Lock::Migrating(task)) {
            return (wakeup, held);
        }
        drop(held);
        drop(lock(Lock::Migrating(task)));
    }
}

/// A task that is in no queue has got another run queue: its lock instead of `held`.
pub fn follow(task: TaskId, held: Held) -> Held {
    let cpu = with(|s| s.tasks[task].cpu);
    if held.0.is_none_or(|lock| lock == Lock::RunQueue(cpu)) {
        return held;
    }
    drop(held);
    run_queue(cpu)
}

/// raw_spin_rq_unlock() of `cpu` while `work` runs, if the fiber has the lock.
fn unlocked<T>(cpu: CpuId, work: impl FnOnce() -> T) -> T {
    let lock_of = Lock::RunQueue(cpu);
    let mut times = 0;
    while fibers::owns(lock_of) {
        fibers::unlock(lock_of);
        times += 1;
    }
    let result = work();
    for _ in 0..times {
        std::mem::forget(run_queue(cpu));
    }
    result
}

/// With the run queue of the task in place of that of `cpu`, as scx_dsq_move() does it.
pub fn at_source<T>(cpu: CpuId, task: TaskId, work: impl FnOnce() -> T) -> T {
    let source = with(|s| s.tasks[task].cpu);
    if !is_on() || fibers::owns(Lock::RunQueue(source)) {
        return work();
    }
    unlocked(cpu, || {
        let _source = run_queue(source);
        work()
    })
}

/// unlink_dsq_and_lock_src_rq() and move_remote_task_to_local_dsq(): a task that has been taken
/// out of a queue goes to the run queue of `cpu`; as long as what is returned is held, it is in
/// none. `None`: somebody has changed it meanwhile, and queued it anew.
pub fn migrate(cpu: CpuId, task: TaskId) -> Option<Held> {
    let source = with(|s| s.tasks[task].cpu);
    if !is_on() || source == cpu {
        with(|s| s.tasks[task].cpu = cpu);
        return Some(Held(None));
    }
    with(|s| s.tasks[task].holding = Some(cpu));
    unlocked(cpu, || {
        let _source = run_queue(source);
        with(|s| {
            let t = &mut s.tasks[task];
            (t.holding == Some(cpu) && t.cpu == source).then(|| {
                t.holding = None;
                t.cpu = cpu;
            })
        })
        .map(|()| lock(Lock::Migrating(task)))
    })
}

/// A change of control groups: cgroup_mutex.
pub fn groups() -> Held {
    let held = lock(Lock::Groups);
    CHANGES.set(CHANGES.get() + 1);
    held
}

/// The number of changes of control groups that have begun; `None`: one is in progress.
pub fn group_changes() -> Option<u64> {
    (!fibers::is_locked(Lock::Groups)).then(|| CHANGES.get())
}
