//! Locks of the kernel, by what they protect. Their order is that in which the kernel takes them.

use crate::FiberId;
use std::collections::BTreeMap;

/// A lock, with the number of what it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// The callback of a timer runs; it never runs twice at a time.
    Timer(usize),
    /// The CPU executes something else: interrupts are off there.
    Cpu(usize),
    /// cgroup_mutex.
    Groups,
    /// The task's pi_lock.
    Wakeup(usize),
    /// `p->on_cpu`: the task has not left its CPU yet.
    OnCpu(usize),
    /// `p->on_rq == TASK_ON_RQ_MIGRATING`: the task is between two run queues.
    Migrating(usize),
    /// The lock of the CPU's run queue.
    RunQueue(usize),
}

/// Who has which lock, and how many times.
#[derive(Debug, Default)]
pub struct Locks(BTreeMap<Lock, (FiberId, u32)>);

impl Locks {
    /// Returns true if `id` has it now.
    pub fn take(&mut self, lock: Lock, id: FiberId) -> bool {
        let (owner, times) = self.0.entry(lock).or_insert((id, 0));
        let may = *owner == id;
        *times += u32::from(may);
        may
    }

    /// Returns true if nobody has it now.
    pub fn give_back(&mut self, lock: Lock, id: FiberId) -> bool {
        let (owner, times) = self.0.get_mut(&lock).expect("a lock that is taken");
        assert_eq!(*owner, id, "{lock:?} belongs to others");
        *times -= 1;
        let is_last = *times == 0;
        if is_last {
            self.0.remove(&lock);
        }
        is_last
    }

    /// Who has it.
    pub fn owner(&self, lock: Lock) -> Option<FiberId> {
        self.0.get(&lock).map(|&(owner, _)| owner)
    }
}
