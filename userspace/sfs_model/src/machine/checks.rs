//! The invariants that hold on every machine.

use super::{bypasses, Machine, LONGEST_WAIT_NS};
use crate::credit_checks;
use crate::group_checks;
use crate::loader;
use sfs_fibers::{longest_ns, PAUSES};
use sfs_kernel_model::ffi::{self, Counts};
use sfs_kernel_model::groups;
use sfs_kernel_model::higher;
use sfs_kernel_model::promises;
use sfs_kernel_model::sched::GLOBAL;
use sfs_kernel_model::state::{with, Cpu, Place, State, TaskId};
use sfs_kernel_rules::waiting;
use std::collections::BTreeMap;

impl Machine {
    /// The invariants.
    pub(super) fn check(&self) {
        recount();
        credit_checks::check();
        waiting::check();
        group_checks::check(self.workload.tick_ns);
        loader::checks::check(self.workload.tick_ns);
        if bypasses::is_on() {
            return; // the kernel decides who waits
        }
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
                check_queue(s, task);
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
            if !s.may_run(task, cpu) || higher::is_stuck(s, task) {
                continue;
            }
            let since = since.max(s.tasks[task].allowed_since);
            let both = s.now - since.max(s.cpus[cpu].idle_since);
            if both > self.idle_limit() {
                let (place, behaviour) = (place_of(s, task), s.tasks[task].behaviour);
                s.finding(format!(
                    "CPU {cpu} has idled for {} us while task {task} ({behaviour:?}) waits in \
                     {place}",
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

/// A task that is held back on its way to user mode loses its CPU by a kick, ns. It may begin a
/// section meanwhile, which the kernel would not let it.
const KICK_NS: u64 = 25_000;
/// Where kicks may stop nobody, as long as the kernel half waits for one (EXIT_KICK_NS), ns.
const LATE_KICK_NS: u64 = 1_000_000;

/// A task in the queue of one CPU may run there, or no CPU would look at it. One that waits for
/// quota is not inside the kernel, where others may wait for it.
fn check_queue(s: &mut State, task: TaskId) {
    let place = s.tasks[task].place;
    let Place::Queue(queue) = place else {
        return;
    };
    let cpu = (queue & 0xffff) as usize;
    if groups::is_parked(place) {
        let life = &s.tasks[task].life;
        let kick = match s.odd.of.bypass_ns {
            0 => KICK_NS,
            _ => LATE_KICK_NS,
        };
        let lost_cpu_at = life.returned_at + kick + PAUSES * longest_ns();
        // Without memory to see it return to user mode, a task is held back wherever it stops.
        if life.stays && life.stays_since > lost_cpu_at && s.odd.of.no_memory_of == 0 {
            s.finding(format!(
                "task {task} waits for quota inside the kernel, in a section without migration"
            ));
        }
    } else if queue != GLOBAL && queue >> 32 != 0 && !s.may_run(task, cpu) {
        s.finding(format!(
            "task {task} waits in queue {queue:#x} of CPU {cpu}, where it may not run"
        ));
    }
}

/// Where a task waits.
fn place_of(s: &State, task: TaskId) -> String {
    let (place, cpu) = (s.tasks[task].place, s.tasks[task].cpu);
    match place {
        Place::Local if higher::has(s, cpu) => {
            format!("Local of CPU {cpu}, which a real-time task has")
        }
        Place::Local => format!("Local of CPU {cpu}"),
        place => format!("{place:x?}"),
    }
}

/// What the kernel half counts is what a recount gives, and no queue has more tasks than count.
fn recount() {
    let tasks: Vec<_> = with(|s| {
        s.live
            .iter()
            .map(|&task| (task, s.tasks[task].fields.task))
            .collect()
    });
    let (mut counted, mut all) = (Counts::default(), Counts::default());
    let mut counted_in = BTreeMap::new();
    for (id, task) in tasks {
        let mut of = Counts::default();
        // SAFETY: the task is one of the machine's.
        unsafe { ffi::model_counts_of(task, &mut of) };
        if of.demand + of.present > 0 && with(|s| groups::is_parked(s.tasks[id].place)) {
            with(|s| s.finding(format!("task {id} waits for quota, and counts as demand")));
        }
        counted_in.insert(id, of.waiting);
        counted.demand += of.demand;
        counted.present += of.present;
        counted.first += of.first;
        counted
            .waiting
            .iter_mut()
            .zip(of.waiting)
            .for_each(|(sum, n)| *sum += n);
    }
    // SAFETY: writes to `all` only.
    unsafe { ffi::model_counts_in_all(&mut all) };
    // SAFETY: returns a constant.
    let counts_queues = unsafe { ffi::model_counts_queues() };
    with(|s| {
        if counted != all {
            s.finding(format!(
                "the kernel half counts {all:?}, and a recount gives {counted:?}"
            ));
        }
        if !counts_queues {
            return;
        }
        // FILTER's number comes first. Its shards are counted by the kernel.
        let first = if s.odd.of.shards > 1 { 2 } else { 1 };
        for (number, &waiting) in all.waiting.iter().enumerate().skip(first) {
            let Some(dsq) = s.queues.get(&((number as u64) << 16)) else {
                continue;
            };
            // A task without a context is not counted.
            let is_known = |task: &TaskId| s.tasks[*task].context.is_some();
            let length = match s.odd.of.no_memory_of {
                0 => dsq.len() as i64,
                _ => dsq.iter().filter(is_known).count() as i64,
            };
            if length > waiting {
                let is_counted =
                    |task: &TaskId| counted_in.get(task).is_some_and(|of| of[number] > 0);
                let left: Vec<TaskId> = dsq.iter().filter(|task| !is_counted(task)).collect();
                s.finding(format!(
                    "queue {number} has {length} tasks, and {waiting} count, not {left:?}"
                ));
            }
        }
    });
}
