//! Queues as the model's kernel has them.

use crate::look::Look;
use sfs_kernel_model::ffi;
use sfs_kernel_model::state::{with, CpuId, State, TaskId};

/// Shared queues.
pub const FILTER: u64 = 0x1_0000;
pub const FAIR: u64 = 0x2_0000;
pub const RANKED: u64 = 0x3_0000;
pub const SYSTEM: u64 = 0x4_0000;
pub const PROMPT: u64 = 0x5_0000;
pub const OUTSIDE: u64 = 0x6_0000;
/// The local queue of the CPU on which enqueue() has the task.
pub const LOCAL: u64 = 1 << 63 | 2;
/// The same kind of queue for pinned tasks of one CPU.
pub fn own(shared: u64, cpu: i64) -> u64 {
    (shared >> 16) << 32 | cpu as u64
}

/// The count of a shared queue, by its number, if it has one.
pub fn counted(l: &mut Look, number: i64) -> Option<&mut i64> {
    Some(match number {
        1 => &mut l.waits_filter,
        2 => &mut l.waits_fair,
        3 => &mut l.waits_ranked,
        4 => &mut l.waits_system,
        5 => &mut l.waits_prompt,
        6 => &mut l.waits_outside,
        _ => return None,
    })
}

/// The number of a queue whose tasks are counted; 0: they are not.
pub fn number(l: &Look, queue: u64) -> i64 {
    if queue >= 8 << 16 || (l.nr_shards > 1 && queue < FAIR) {
        return 0;
    }
    (queue >> 16) as i64
}

/// When the task was queued, ns; 0: it has not to wait, or is not known.
pub fn queued_at(s: &State, task: TaskId) -> i64 {
    let context = s.tasks[task].context.as_ref();
    // SAFETY: it is the kernel half's context of a task.
    context.map_or(0, |of| unsafe { ffi::model_queued_at_in(of.place()) }) as i64
}

/// The first task of a queue.
pub fn head(s: &State, queue: u64) -> Option<TaskId> {
    s.queues.get(&queue)?.iter().next()
}

/// How long the first task of a queue has waited, ns; 0: there is none. Unknown is long enough.
pub fn head_wait(queue: u64, now: i64) -> i64 {
    with(|s| match head(s, queue) {
        None => 0,
        Some(task) => match queued_at(s, task) {
            0 => 100_000_000,
            at => (now - at).max(0),
        },
    })
}

/// The first task of a queue that may run on a CPU.
pub fn first_for(s: &State, queue: u64, cpu: CpuId) -> Option<TaskId> {
    let mut tasks = s.queues.get(&queue)?.iter();
    tasks.find(|&task| s.may_run(task, cpu))
}

/// How many tasks a queue has.
pub fn length(s: &State, queue: u64) -> i64 {
    s.queues.get(&queue).map_or(0, |dsq| dsq.len()) as i64
}

/// How many tasks a queue has as the kernel half sees it: those on their way into it, or from it to a
/// CPU, count as well.
pub fn seen(l: &Look, queue: u64) -> i64 {
    let mut copy = *l;
    let number = number(l, queue);
    match counted(&mut copy, number) {
        Some(count) => (*count).max(0),
        None => with(|s| length(s, queue)),
    }
}

/// What dispatch() finds.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    /// For each queue that it may look at, in no order: the queue, the first task, its virtual
    /// time, when it was queued, whether it may run on the CPU, and the first that may.
    pub all: Vec<Queue>,
}

/// A queue with a task.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    pub id: u64,
    pub head: TaskId,
    pub vtime: i64,
    pub queued_at: i64,
    pub first: Option<TaskId>,
    pub length: i64,
}

impl Queues {
    pub fn get(&self, id: u64) -> Option<&Queue> {
        self.all.iter().find(|queue| queue.id == id)
    }

    /// The queue has a task.
    pub fn has(&self, id: u64) -> bool {
        self.get(id).is_some()
    }

    /// It has one for the CPU.
    pub fn first(&self, id: u64) -> Option<TaskId> {
        self.get(id)?.first
    }
}

/// All queues that `cpu` looks at.
pub fn all(cpu: CpuId) -> Queues {
    let shards = with(|s| u64::from(s.odd.of.shards.max(1)));
    let own_ids = [FILTER, FAIR, RANKED, OUTSIDE].map(|queue| own(queue, cpu as i64));
    let ids = [FAIR, RANKED, SYSTEM, PROMPT, OUTSIDE].into_iter();
    let ids = ids.chain(own_ids).chain((0..shards).map(|n| FILTER + n));
    with(|s| {
        let one = |id| {
            let head = head(s, id)?;
            Some(Queue {
                id,
                head,
                // SAFETY: the task's memory lives as long as the machine.
                vtime: unsafe { *s.tasks[head].fields.vtime } as i64,
                queued_at: queued_at(s, head),
                first: first_for(s, id, cpu),
                length: length(s, id),
            })
        };
        Queues {
            all: ids.filter_map(one).collect(),
        }
    })
}
