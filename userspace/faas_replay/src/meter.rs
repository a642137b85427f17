//! The kernel's counters of a process.

use nix::sys::resource::{getrusage, Usage as Rusage, UsageWho};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// CPU time and context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time in microseconds.
    pub cpu_us: u64,
    /// Context switches because it blocked or exited.
    pub voluntary: u64,
    /// Context switches because it was preempted.
    pub involuntary: u64,
}

impl Usage {
    /// The usage of the calling process so far; `None` if it is unknown.
    pub fn own() -> Self {
        getrusage(UsageWho::RUSAGE_SELF).map_or_else(|_| Self::default(), Self::from)
    }

    /// The usage since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

impl From<Rusage> for Usage {
    fn from(usage: Rusage) -> Self {
        let us = |time: nix::sys::time::TimeVal| {
            time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64
        };
        Self {
            cpu_us: us(usage.user_time()) + us(usage.system_time()),
            voluntary: usage.voluntary_context_switches() as u64,
            involuntary: usage.involuntary_context_switches() as u64,
        }
    }
}

/// The time for which the calling process was runnable without running.
///
/// The kernel's scheduling core counts it for tasks of every class, including
/// those of a sched_ext scheduler.
#[derive(Debug)]
pub struct RunQueueWait(File);

impl RunQueueWait {
    /// The counter of the calling process, if this kernel has it.
    pub fn own() -> Option<Self> {
        File::open("/proc/self/schedstat").ok().map(Self)
    }

    /// Nanoseconds so far.
    pub fn ns(&self) -> Option<u64> {
        let mut buffer = [0; 96];
        let length = self.0.read_at(&mut buffer, 0).ok()?;
        parse(&buffer[..length])
    }
}

/// The second of the numbers in `text`.
fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Measures the usage of a process from one lap to the next.
#[derive(Debug)]
pub struct Meter {
    wait: Option<RunQueueWait>,
    usage: Usage,
    wait_ns: Option<u64>,
}

impl Meter {
    /// Begins the first lap of the calling process.
    pub fn begin() -> Self {
        let wait = RunQueueWait::own();
        Self {
            usage: Usage::own(),
            wait_ns: wait.as_ref().and_then(RunQueueWait::ns),
            wait,
        }
    }

    /// The usage since the last lap, and the nanoseconds on the run queue.
    pub fn lap(&mut self) -> (Usage, Option<u64>) {
        let usage = Usage::own();
        let wait_ns = self.wait.as_ref().and_then(RunQueueWait::ns);
        let waited = wait_ns.zip(self.wait_ns).map(|(now, then)| now - then);
        let used = usage.since(self.usage);
        (self.usage, self.wait_ns) = (usage, wait_ns);
        (used, waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse(b"120 45 3\n"), Some(45));
        for other in [&b""[..], b"7", b"7 x 1", b"\xff \xff"] {
            assert_eq!(parse(other), None);
        }
    }

    #[test]
    fn laps_are_differences() {
        let mut meter = Meter::begin();
        let before = Usage::own();
        while Usage::own().since(before).cpu_us < 2000 {}
        let (used, wait_ns) = meter.lap();
        assert!(used.cpu_us >= 2000, "{used:?}");
        let known = std::path::Path::new("/proc/self/schedstat").exists();
        assert_eq!(wait_ns.is_some(), known);
        assert!(meter.usage.cpu_us >= used.cpu_us);
    }
}
