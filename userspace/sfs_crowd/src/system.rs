//! Threads, clocks and priorities for the crowds.

use std::io::{self, Write};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

/// Stack of a thread in bytes: the least that the C library allows.
const STACK: usize = 16 * 1024;

/// Makes the caller a real-time process, which no crowd delays. Its children have the default
/// policy again.
///
/// # Errors
///
/// The kernel refuses: not root.
pub fn become_real_time() -> Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` outlives the call.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
    ensure!(
        result == 0,
        "cannot become a real-time process: {}",
        io::Error::last_os_error()
    );
    Ok(())
}

/// Starts a thread with a small stack.
///
/// # Errors
///
/// There is no memory for it, or a limit is reached (threads-max, pid_max, max_map_count).
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .context("cannot start another thread")
}

/// Returns the time since boot.
pub fn now() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Uses `demand` of CPU time on the calling thread's own clock.
pub fn burn(demand: Duration) {
    /// Without a look at the clock: 5 us at a nanosecond for each instruction.
    const STRETCH: u64 = 5_000;
    let end = read(ClockId::CLOCK_THREAD_CPUTIME_ID) + demand;
    loop {
        let left = end.saturating_sub(read(ClockId::CLOCK_THREAD_CPUTIME_ID));
        if left.is_zero() {
            return;
        }
        if left.as_nanos() >= u128::from(20 * STRETCH) {
            faas_noops::pass(STRETCH / faas_noops::INSTRUCTIONS);
        }
    }
}

/// Sleeps until `time` on the clock of [`now`].
pub fn sleep_until(time: Duration) {
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &time.into()).is_err() {}
}

fn read(clock: ClockId) -> Duration {
    // Both clocks exist on every Linux, so this cannot fail.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Prints "ready" and sleeps forever.
///
/// # Errors
///
/// Standard output cannot be written.
pub fn ready() -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "ready").and_then(|()| out.flush())?;
    drop(out);
    loop {
        std::thread::park();
    }
}
