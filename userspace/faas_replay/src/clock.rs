//! The clocks of replays and of work, without allocation or failure paths.

use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

/// Nanoseconds on the monotonic clock.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux; a failure would show in cpu_us as a
    // child that ends at once.
    clock_gettime(clock).map_or(u64::MAX, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// Sleeps until the monotonic clock shows `ns`; returns at once if that has
/// passed.
pub fn sleep_until(ns: u64) {
    let time = nix::sys::time::TimeSpec::new(
        (ns / 1_000_000_000) as libc::time_t,
        (ns % 1_000_000_000) as libc::c_long,
    );
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while let Err(nix::errno::Errno::EINTR) =
        clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &time)
    {}
}
