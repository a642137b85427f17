//! A thread that runs before all others for a moment.

use std::io;

use tracing::debug;

/// While this exists, the thread that created it is a real-time thread of the lowest priority.
pub struct RealTime(());

impl RealTime {
    /// Makes this thread a real-time thread. Returns None if the system does not allow it.
    /// Without `CAP_SYS_NICE` a limit is required (`ulimit -r 1`, `LimitRTPRIO=1`). A kernel
    /// with `CONFIG_RT_GROUP_SCHED` gives control groups no real-time budget by default.
    pub fn enter() -> Option<Self> {
        match set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) {
            Ok(()) => Some(Self(())),
            Err(error) => {
                debug!(
                    "continues at normal priority, since real-time priority is refused: \
                     {error}"
                );
                None
            }
        }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // Going back needs no privilege. Only clearing the flag does; an unprivileged thread
        // keeps it.
        let usual = set_policy(libc::SCHED_OTHER, 0)
            .or_else(|_| set_policy(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0));
        if let Err(error) = usual {
            debug!("stays a real-time thread: {error}");
        }
    }
}

/// Gives this thread `policy` with `priority`.
fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters are read during the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
    }

    #[test]
    fn returns_to_the_normal_policy() {
        let first = RealTime::enter();
        let expected = if first.is_some() {
            libc::SCHED_FIFO
        } else {
            libc::SCHED_OTHER
        };
        assert_eq!(policy(), expected);
        drop(first);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
