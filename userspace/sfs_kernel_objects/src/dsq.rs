//! Dispatch queues: first-in-first-out, or by virtual time (kernel/sched/ext.c, `struct
//! scx_dispatch_q`). A queue is one or the other for as long as it is not empty.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A task, by its number.
pub type TaskId = usize;

/// A queue.
#[derive(Debug, Default)]
pub struct Dsq {
    /// Tasks by virtual time (0 in a queue without) and order of insertion. Virtual times are
    /// compared as the kernel does, by their difference; all of a queue are near each other.
    tasks: BTreeMap<(i64, i64), TaskId>,
    first: i64,
    last: i64,
    /// Its tasks have virtual times.
    by_vtime: bool,
}

/// A task's place in a queue.
pub type Key = (i64, i64);

/// A walk through a queue: what it will show, in order.
#[derive(Debug)]
pub struct Walk {
    /// The queue.
    pub queue: u64,
    /// Tasks that were queued later than this are not shown.
    pub began: u64,
    /// From the end to the front.
    pub reverse: bool,
    /// The place of the task that was shown last.
    pub at: Option<Key>,
    /// Slice and virtual time for the next move.
    pub next_slice: Option<u64>,
    /// See `next_slice`.
    pub next_vtime: Option<u64>,
}

impl Dsq {
    /// Returns true if a task that comes with or without a virtual time is no match for those that
    /// wait: an error of the scheduler, for which the kernel ends it.
    pub fn mixes(&self, by_vtime: bool) -> bool {
        !self.tasks.is_empty() && self.by_vtime != by_vtime
    }

    /// At the end, or at the front.
    pub fn push(&mut self, task: TaskId, front: bool) -> Key {
        self.by_vtime = false;
        let key = if front {
            self.first -= 1;
            (0, self.first)
        } else {
            self.last += 1;
            (0, self.last)
        };
        self.tasks.insert(key, task);
        key
    }

    /// Behind all tasks with this virtual time or an earlier one.
    pub fn push_by_vtime(&mut self, task: TaskId, vtime: u64) -> Key {
        self.by_vtime = true;
        self.last += 1;
        let key = (vtime as i64, self.last);
        self.tasks.insert(key, task);
        key
    }

    /// Takes the task at `key` out. Returns whether there was one.
    pub fn remove(&mut self, key: Key) -> bool {
        self.tasks.remove(&key).is_some()
    }

    /// The task behind the place `key`, or the first; in reverse, the one before it, or the last.
    pub fn beside(&self, key: Option<Key>, reverse: bool) -> Option<(Key, TaskId)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        let found = if reverse {
            self.tasks.range((Bound::Unbounded, from)).next_back()
        } else {
            self.tasks.range((from, Bound::Unbounded)).next()
        };
        found.map(|(&key, &task)| (key, task))
    }

    /// The tasks in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.tasks.values().copied()
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns true if it has no task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
