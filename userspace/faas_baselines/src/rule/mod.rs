//! The rules of the daemons, without I/O: they are told of processes and times, and say what
//! to look at and what to change. All times are on the monotonic clock, in ns.

pub mod demoter;
pub mod original;

use sfs_policy::{defaults, Config, Controller, SlicePolicy};

/// A process.
pub type Pid = i32;

/// The scheduling class of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// SCHED_NORMAL with nice 0, as it began.
    Fair,
    /// SCHED_NORMAL with this nice value, 1 to 19.
    Nice(i32),
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with priority 1.
    Fifo,
}

/// A change of class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The process.
    pub pid: Pid,
    /// Its new class.
    pub class: Class,
}

/// What a rule wants to know of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The CPU time that it has used.
    CpuTime,
    /// Whether it is blocked.
    Blocked,
}

/// What was seen of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The CPU time that it has used, in ns.
    CpuTime(u64),
    /// Whether it is blocked.
    Blocked(bool),
}

/// A rule.
pub trait Rule {
    /// What it wants to know of processes.
    fn look(&self) -> Look;
    /// A process began at `at_ns`.
    fn began(&mut self, pid: Pid, at_ns: u64, now_ns: u64, orders: &mut Vec<Order>);
    /// A process has ended, or cannot be seen any more.
    fn ended(&mut self, pid: Pid, now_ns: u64, orders: &mut Vec<Order>);
    /// When it wants to be called again, if ever.
    fn wake_ns(&self) -> Option<u64>;
    /// It is `now_ns`: names the processes to look at.
    fn due(&mut self, now_ns: u64, looks: &mut Vec<Pid>, orders: &mut Vec<Order>);
    /// What was seen of a process that it has named.
    fn seen(&mut self, pid: Pid, seen: Seen, now_ns: u64, orders: &mut Vec<Order>);
}

/// S by the rule of `scx_sfs --policy sfs`: mean inter-arrival time x `cpus`, computed anew
/// every 100 arrivals, and 100 ms until then. Or always `after_ns`, if given.
///
/// # Errors
/// If `after_ns` can be no slice (0 or `u64::MAX`).
pub fn slice(after_ns: Option<u64>, cpus: u32) -> Result<Controller, sfs_policy::PolicyError> {
    let (slice, initial_slice_ns) = match after_ns {
        Some(ns) => (SlicePolicy::fixed(ns)?, ns),
        None => (
            SlicePolicy::new(defaults::SLICE_MIN_NS, defaults::SLICE_MAX_NS)?,
            defaults::INITIAL_SLICE_NS,
        ),
    };
    Ok(Controller::new(Config {
        window: defaults::WINDOW,
        slice,
        initial_slice_ns,
        overload: None,
        cpus,
    }))
}
