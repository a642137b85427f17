//! Scheduling events, as the state machine gets them.

use crate::cpus::Cpus;
use crate::kind::{Place, Turn};

/// The name of a program, as the kernel has it: up to 15 bytes, then zeros.
pub type Comm = [u8; 16];

/// What scx_sfs knows about the invocation that a task's unit serves, or served last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The tasks that share it: the id of a process, of a thread, or of a sandbox's cgroup.
    pub unit: u64,
    /// Its number within the unit.
    pub seq: u32,
    /// Whether it is in progress.
    pub open: bool,
    /// When it arrived, in ns of CLOCK_MONOTONIC.
    pub arrived_at: u64,
    /// Identity of its function; 0: not known.
    pub function: u64,
    /// Id of the sandbox's cgroup; 0: none.
    pub sandbox: u64,
}

/// A task, as it is when the event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The thread; 0: the CPU idles.
    pub pid: i32,
    /// Its process.
    pub tgid: i32,
    /// The program's name.
    pub comm: Comm,
    /// Id of its cgroup; 0: unknown.
    pub cgroup: u64,
    /// Where it waits; None: nowhere, or unknown.
    pub place: Option<Place>,
    /// The kind of its turn.
    pub turn: Turn,
    /// Whether it is a real-time or deadline task.
    pub real_time: bool,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// Whether it may not use all CPUs; [`What::Confined`] has told which.
    pub confined: bool,
    /// Whether all threads of its process have begun to exit.
    pub last: bool,
    /// The invocation. None: with scx_sfs unknown at the moment; with another scheduler always.
    pub work: Option<Work>,
}

/// Why a task leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It is still runnable.
    Runnable,
    /// It sleeps.
    Asleep {
        /// For a disk, or the like.
        io: bool,
    },
    /// It has exited.
    Dead,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A CPU switches from one task to another.
    Switch {
        /// The CPU.
        cpu: usize,
        /// The task that leaves.
        prev: Task,
        /// Why it does.
        left: Left,
        /// The task that comes.
        next: Task,
    },
    /// A task becomes runnable.
    Wake {
        /// The task.
        task: Task,
        /// For the first time.
        new: bool,
    },
    /// A waiting task is moved to another queue.
    Moved(Task),
    /// The task that runs on this CPU has another turn, class or invocation than before.
    Look(usize, Task),
    /// The CPUs that a task may use while it waits, from its next event on.
    Confined(i32, Cpus),
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it happens, in ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// What happens.
    pub what: What,
}
