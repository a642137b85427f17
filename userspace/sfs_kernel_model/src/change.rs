//! Attributes of a task change, wherever it is.

use crate::sched::{call, do_enqueue_task, update_curr, DEQ_SAVE};
use crate::state::{with, CpuId, Place, State, TaskId};
use crate::timeline::{cpus_of, Entry};
use crate::{ffi, groups, promises, race};

/// sched_change_begin() and sched_change_end(): an attribute of a task changes. Where it waits, it
/// leaves its queue and comes back; where it runs, it stops and goes on.
pub fn change(cpu: CpuId, task: TaskId, set: impl FnOnce(&mut State)) {
    let (_wakeup, queue) = race::task_rq(task);
    let place = with(|s| s.tasks[task].place);
    if matches!(place, Place::Asleep | Place::Dead) {
        return with(set);
    }
    with(|s| {
        promises::forget(s, task);
        leave_queue(s, task, place);
    });
    if place == Place::Running {
        with(|s| update_curr(s, s.tasks[task].cpu));
        // SAFETY: the task is one of the machine's.
        call(cpu, task, |p| unsafe { ffi::sfs_stopping(p, false) });
    }
    // SAFETY: the task is one of the machine's.
    call(cpu, task, |p| unsafe { ffi::sfs_quiescent(p, DEQ_SAVE) });
    with(set);
    let _queue = race::follow(task, queue);
    // SAFETY: the same.
    call(cpu, task, |p| unsafe { ffi::sfs_runnable(p, 0) });
    if place == Place::Running {
        // SAFETY: the same.
        return call(cpu, task, |p| unsafe { ffi::sfs_running(p) });
    }
    do_enqueue_task(cpu, task, 0);
}

/// dispatch_dequeue(): a task that does not run leaves its queue.
fn leave_queue(s: &mut State, task: TaskId, place: Place) {
    let (cpu, key) = (s.tasks[task].cpu, s.tasks[task].key);
    let there = match place {
        Place::Running => return,
        Place::Local => {
            let before = s.cpus[cpu].local.len();
            s.cpus[cpu].local.retain(|&other| other != task);
            s.cpus[cpu].local.len() < before
        }
        Place::Queue(queue) => s.queues.get_mut(&queue).is_some_and(|dsq| dsq.remove(key)),
        // dispatch_dequeue(): the CPU that has taken it out finds that somebody was earlier.
        Place::Moving => s.tasks[task].holding.take().is_some(),
        Place::Asleep | Place::Dead => false,
    };
    if !there {
        s.finding(format!("task {task} is not where it waits, {place:x?}"));
    }
    if groups::is_parked(place) {
        s.tasks[task].waits_since = Some(s.now); // until now it has waited for quota
    }
    s.tasks[task].place = Place::Moving;
}

/// A weight from 1 to 10000, more often a low or a high one.
pub fn set_weight(s: &mut State, task: TaskId, value: u64) {
    let weight = [1, 3, 100, 100, 1_000, 10_000][value as usize % 6];
    // SAFETY: the task's memory lives as long as the machine.
    unsafe { *s.tasks[task].fields.weight = weight };
    s.tell(Entry::Changed(task, format!("use a weight of {weight}")));
}

/// One CPU, all, or some. A task that runs keeps its CPU among them; one that waits goes with
/// its run queue.
pub fn set_cpus(s: &mut State, task: TaskId, value: u64) {
    let (count, fields) = (s.cpus.len(), s.tasks[task].fields);
    let keep = if s.tasks[task].place == Place::Running || s.tasks[task].life.stays {
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
    if s.recorded {
        let what = format!("run {}", cpus_of(s, task));
        s.tell(Entry::Changed(task, what));
    }
    let (here, place) = (s.tasks[task].cpu, s.tasks[task].place);
    // One that sleeps is moved when it wakes up (select_fallback_rq()).
    if place != Place::Asleep && !s.may_run(task, here) {
        s.tasks[task].cpu = keep;
    }
}
