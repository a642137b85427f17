//! Clocks, and what burns and passes time.

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

/// Returns the time since boot.
pub fn now() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the CPU time that the calling thread has used.
pub fn cpu_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> Duration {
    // Both clocks exist on every Linux, so that this cannot fail.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Uses `demand` of CPU time on the calling thread's own clock: how long that
/// takes is the scheduler's affair, how much it is, is not.
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

/// Calculates for some microseconds, if that is well below `left`, so that not all of what a
/// busy process does is to ask for the time: a host takes ten times as long to emulate that.
pub fn calculate(left: Duration) {
    /// Of some 75 instructions: 5 us where each takes a nanosecond, and with four emulated
    /// CPUs in turn 20.
    const ROUNDS: u32 = 70;
    if left < ms(1) / 10 {
        return;
    }
    let mut number = left.subsec_nanos() | 1;
    for _ in 0..ROUNDS {
        for _ in 0..8 {
            // Marsaglia's xorshift: no compiler makes less of several than of one.
            number ^= number << 13;
            number ^= number >> 17;
            number ^= number << 5;
        }
        number = black_box(number);
    }
}

/// Sleeps.
pub fn sleep(duration: Duration) {
    sleep_until(now() + duration);
}

/// Sleeps until `time` on the clock of [`now`], so that a row of intervals does
/// not drift.
pub fn sleep_until(time: Duration) {
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &time.into()).is_err() {}
}

/// Waits until `done`, asking every few milliseconds; returns false if that has
/// not come after `limit`.
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

/// Shorthand for milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Keeps emulated CPUs in step, until it is dropped.
///
/// In virtual time one host thread runs the CPUs in turn, each until its share
/// of the time to the next timer is used up: up to a millisecond in which the
/// others stand still, so that what one CPU asks of another takes milliseconds.
/// A timer that fires every 122 us, that of the real-time clock, makes the turns
/// short enough to measure below a millisecond.
pub struct InStep(#[allow(dead_code, reason = "closing it stops the timer")] File);

impl InStep {
    /// Starts the timer.
    ///
    /// # Errors
    ///
    /// There is no real-time clock with one.
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
