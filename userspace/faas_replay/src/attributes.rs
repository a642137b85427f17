//! sched_setattr and sched_getattr: scheduling attributes of a process, all at once.

use nix::errno::Errno;

/// The attributes, as in the kernel's uapi/linux/sched/types.h (its first version, which
/// every kernel with these calls takes).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    size: u32,
    /// The policy: SCHED_NORMAL and the others of sched.h.
    pub policy: u32,
    /// Flags, of which none is used here.
    pub flags: u64,
    /// The nice value, -20 to 19, of SCHED_NORMAL and SCHED_BATCH.
    pub nice: i32,
    /// The priority, 1 to 99, of SCHED_FIFO and SCHED_RR; 0 for the others.
    pub priority: u32,
    /// The slice in ns of SCHED_NORMAL and SCHED_BATCH since Linux 6.12; 0: the base slice.
    pub runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

impl Attributes {
    /// Those of a policy without further attributes.
    pub fn of(policy: i32) -> Self {
        Self {
            size: SIZE,
            policy: policy as u32,
            ..Self::default()
        }
    }

    /// The same with a nice value.
    #[must_use]
    pub fn nice(self, nice: i32) -> Self {
        Self { nice, ..self }
    }

    /// The same with a real-time priority.
    #[must_use]
    pub fn priority(self, priority: u32) -> Self {
        Self { priority, ..self }
    }

    /// The same with a slice.
    #[must_use]
    pub fn slice(self, ns: u64) -> Self {
        Self {
            runtime_ns: ns,
            ..self
        }
    }

    /// Gives them to the thread `pid`, 0 for this one.
    ///
    /// # Errors
    /// If the kernel refuses: EPERM without the right to, ESRCH if it is gone.
    pub fn set(&self, pid: libc::pid_t) -> Result<(), Errno> {
        // SAFETY: the kernel reads as much of `self` as its size says.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, self, 0) };
        Errno::result(result).map(drop)
    }

    /// Those of the thread `pid`, 0 for this one.
    ///
    /// # Errors
    /// ESRCH if it is gone.
    pub fn get(pid: libc::pid_t) -> Result<Self, Errno> {
        let mut found = Self::default();
        // SAFETY: the kernel writes at most SIZE bytes, all of `found`.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, pid, &mut found, SIZE, 0) };
        Errno::result(result).map(|_| found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_can_be_read() {
        // In a thread of its own, which nice values and policies belong to.
        let thread = std::thread::spawn(|| {
            Attributes::of(libc::SCHED_BATCH).nice(7).set(0).unwrap();
            let batch = Attributes::get(0).unwrap();
            Attributes::of(libc::SCHED_IDLE).set(0).unwrap();
            (batch, Attributes::get(0).unwrap())
        });
        let (batch, idle) = thread.join().unwrap();
        assert_eq!((batch.policy, batch.nice), (libc::SCHED_BATCH as u32, 7));
        assert_eq!(idle.policy, libc::SCHED_IDLE as u32);
    }

    #[test]
    fn a_priority_that_no_policy_has_is_refused() {
        let wrong = Attributes::of(libc::SCHED_OTHER).priority(5);
        assert_eq!(wrong.set(0), Err(Errno::EINVAL));
    }
}
