//! Scheduling policies of the dispatcher and of its children.

use crate::attributes::Attributes;
use crate::cpus;
use nix::errno::Errno;
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use std::fmt;

/// Real-time priority of the dispatcher: above the children of every row, so no
/// scheduler under test can delay an arrival.
pub const DISPATCHER_PRIORITY: i32 = 50;

/// Real-time priority of the processes that help it: below the dispatcher, and
/// above the children.
pub const HELPER_PRIORITY: i32 = DISPATCHER_PRIORITY - 1;

/// The remedy if real-time priority is refused.
pub const HOW_TO_PERMIT: &str = "real-time priority (SCHED_FIFO) is not permitted: \
    run as root, or with CAP_SYS_NICE, or with a limit such as `ulimit -r 50`";

/// The scheduling policy that children run under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildPolicy {
    /// SCHED_NORMAL: EEVDF, or the sched_ext scheduler if one is loaded.
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_FIFO with priority 1.
    Fifo,
    /// SCHED_RR with priority 1.
    RoundRobin,
    /// SCHED_NORMAL with a slice of its own, in ns (EEVDF since Linux 6.12).
    Sliced(u32),
}

/// Where [`ChildPolicy::to_word`] has the slice; the policy's number is below.
const SLICE_BIT: u32 = 32;

impl ChildPolicy {
    const FIXED: [Self; 4] = [Self::Normal, Self::Batch, Self::Fifo, Self::RoundRobin];

    /// The kernel's number of the policy.
    pub fn number(self) -> i32 {
        match self {
            Self::Normal | Self::Sliced(_) => libc::SCHED_OTHER,
            Self::Batch => libc::SCHED_BATCH,
            Self::Fifo => libc::SCHED_FIFO,
            Self::RoundRobin => libc::SCHED_RR,
        }
    }

    /// The policy in one word, for the board.
    pub fn to_word(self) -> u64 {
        let slice_ns = match self {
            Self::Sliced(ns) => ns,
            _ => 0,
        };
        u64::from(slice_ns) << SLICE_BIT | self.number() as u64
    }

    /// The policy of a word, if it is one of these.
    pub fn from_word(word: u64) -> Option<Self> {
        let slice_ns = (word >> SLICE_BIT) as u32;
        let number = i32::try_from(word & u64::from(u32::MAX)).ok()?;
        let fixed = Self::FIXED.into_iter().find(|one| one.number() == number)?;
        match (fixed, slice_ns) {
            (policy, 0) => Some(policy),
            (Self::Normal, ns) => Some(Self::Sliced(ns)),
            _ => None,
        }
    }

    /// Gives the process `pid` this policy. New children have SCHED_NORMAL.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn apply(self, pid: libc::pid_t) -> Result<(), Errno> {
        match self {
            Self::Normal => Ok(()),
            Self::Batch => set(pid, self.number(), 0),
            Self::Fifo | Self::RoundRobin => set(pid, self.number(), 1),
            Self::Sliced(ns) => Attributes::of(self.number()).slice(ns.into()).set(pid),
        }
    }
}

impl fmt::Display for ChildPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("SCHED_NORMAL"),
            Self::Batch => f.write_str("SCHED_BATCH"),
            Self::Fifo => f.write_str("SCHED_FIFO"),
            Self::RoundRobin => f.write_str("SCHED_RR"),
            Self::Sliced(ns) => write!(f, "SCHED_NORMAL with a slice of {ns} ns"),
        }
    }
}

/// Gives the calling thread the dispatcher's priority. Its children start
/// with SCHED_NORMAL.
///
/// # Errors
/// EPERM if real-time priority is not permitted.
pub fn become_dispatcher() -> Result<(), Errno> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    set(0, policy, DISPATCHER_PRIORITY)
}

/// Gives the calling thread a helper's priority. Its children start with
/// SCHED_NORMAL.
///
/// # Errors
/// EPERM if real-time priority is not permitted.
pub fn become_helper() -> Result<(), Errno> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    set(0, policy, HELPER_PRIORITY)
}

/// Restricts this process and its children to the first `count` of its CPUs; 0:
/// no restriction.
///
/// # Errors
/// If the kernel refuses.
pub fn pin(count: u32) -> Result<(), Errno> {
    if count == 0 {
        return Ok(());
    }
    let mut first = cpus::usable()?;
    first.truncate(count as usize);
    cpus::confine(&first)
}

/// Raises this process's limit of open files as far as possible: it needs one
/// for each request in progress. A lower limit is not an error until it is
/// reached.
pub fn raise_file_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Whether this process may take the dispatcher's priority: tries it, and
/// returns to SCHED_NORMAL.
pub fn permitted() -> bool {
    let allowed = set(0, libc::SCHED_FIFO, DISPATCHER_PRIORITY).is_ok();
    allowed && set(0, libc::SCHED_OTHER, 0).is_ok()
}

fn set(pid: libc::pid_t, policy: i32, priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is a valid sched_param for the call's duration.
    Errno::result(unsafe { libc::sched_setscheduler(pid, policy, &parameters) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_found_by_their_word() {
        let sliced = [ChildPolicy::Sliced(1), ChildPolicy::Sliced(u32::MAX)];
        for policy in ChildPolicy::FIXED.into_iter().chain(sliced) {
            assert_eq!(ChildPolicy::from_word(policy.to_word()), Some(policy));
        }
        let fifo_with_slice = ChildPolicy::Fifo.to_word() | 5 << SLICE_BIT;
        for wrong in [77, fifo_with_slice, u64::MAX] {
            assert_eq!(ChildPolicy::from_word(wrong), None, "{wrong:x}");
        }
    }
}
