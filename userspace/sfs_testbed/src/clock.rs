//! Clocks, sleeps, and burning of CPU time.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

/// The limit of waits: longer than any process under test may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the time since boot.
pub fn now() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the time from `start`, on the clock of [`now`], until now.
pub fn since(start: Duration) -> Duration {
    now() - start
}

/// Returns the CPU time that the calling thread has used.
pub fn cpu_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> Duration {
    // Both clocks exist on every Linux, so this cannot fail.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Uses `demand` of CPU time on the calling thread's own clock, however long the scheduler takes
/// to give it.
pub fn burn(demand: Duration) {
    let end = cpu_time() + demand;
    loop {
        let left = end.saturating_sub(cpu_time());
        if left.is_zero() {
            return;
        }
        calculate(left);
    }
}

/// Uses CPU time, well below `left`, without a look at the clock: that takes a host several times as
/// long to emulate as anything else here.
pub fn calculate(left: Duration) {
    /// 5 us at a nanosecond for each instruction, 20 us with four emulated CPUs in turn.
    const SHORT: u64 = 5_000 / faas_noops::INSTRUCTIONS;
    /// 20 us, and 80 us.
    const LONG: u64 = 4 * SHORT;
    if left >= ms(1) {
        faas_noops::pass(LONG);
    } else if left >= ms(1) / 10 {
        faas_noops::pass(SHORT);
    }
}

/// Sleeps for `duration`.
pub fn sleep(duration: Duration) {
    sleep_until(now() + duration);
}

/// Sleeps until `time` on the clock of [`now`], so that successive intervals do not drift.
pub fn sleep_until(time: Duration) {
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &time.into()).is_err() {}
}

/// Waits until `done` returns true, which is called every 5 ms; returns false after `limit`.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = now() + limit;
    while !done() {
        if now() > end {
            return false;
        }
        sleep(ms(5));
    }
    true
}

/// Returns a duration in milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Waits for a grace period of RCU, by membarrier(MEMBARRIER_CMD_GLOBAL).
///
/// # Errors
///
/// The kernel has no membarrier().
pub fn wait_for_grace_period() -> Result<()> {
    const GLOBAL: libc::c_long = 1;
    // SAFETY: takes plain numbers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    ensure!(done == 0, "membarrier: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Keeps emulated CPUs in step until it is dropped.
///
/// In virtual time one host thread runs the CPUs in turn, each until its share of the time to
/// the next timer is used up. The others stand still for up to a millisecond, so a request from
/// one CPU to another takes milliseconds. The real-time clock's timer, which fires every 122 us,
/// makes the turns short enough to measure below a millisecond.
pub struct InStep(#[allow(dead_code, reason = "closing it stops the timer")] File);

impl InStep {
    /// Starts the timer.
    ///
    /// # Errors
    ///
    /// There is no real-time clock with a periodic timer.
    pub fn start() -> Result<Self> {
        const RTC_PIE_ON: libc::c_ulong = 0x7005; // linux/rtc.h
        const RTC_IRQP_SET: libc::c_ulong = 0x4008_700c;
        const HZ: libc::c_ulong = 8192;

        let clock = File::open("/dev/rtc0").context("there is no real-time clock")?;
        let fd = clock.as_raw_fd();
        // SAFETY: the descriptor is open, and both requests take plain numbers.
        let done = unsafe {
            libc::ioctl(fd, RTC_IRQP_SET, HZ) == 0 && libc::ioctl(fd, RTC_PIE_ON, 0) == 0
        };
        ensure!(done, "the real-time clock has no periodic timer");
        Ok(Self(clock))
    }
}
