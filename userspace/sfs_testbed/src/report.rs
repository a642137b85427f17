//! Reports of processes under test: numbers in memory shared with the case, so that a report
//! needs no system call that could block.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::mman::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use nix::sys::resource::{getrusage, UsageWho};

use crate::clock::{calculate, cpu_time, now};

/// Numbers written by one process and read by another; times in nanoseconds.
#[derive(Default)]
pub struct Report {
    started: AtomicU64,
    ended: AtomicU64,
    cpu: AtomicU64,
    involuntary: AtomicU64,
    longest_gap: AtomicU64,
    cpu_number: AtomicU64,
    stopped: AtomicBool,
    /// A number for any use by a case.
    pub value: AtomicU64,
}

impl Report {
    /// Records that the process runs.
    pub fn start(&self) {
        set(&self.started, now());
    }

    /// Records that the process has done its work, with its CPU time and switches.
    pub fn end(&self) {
        set(&self.cpu, cpu_time());
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let count = usage.involuntary_context_switches();
            self.involuntary.store(count.unsigned_abs(), Relaxed);
        }
        set(&self.ended, now());
    }

    /// Burns CPU time like [`crate::clock::burn`], and meanwhile reports the CPU time used, the
    /// CPU, and the longest time without a CPU.
    pub fn burn(&self, demand: Duration) {
        let (mut seen, end) = (now(), cpu_time().saturating_add(demand));
        loop {
            let (time, used) = (now(), cpu_time());
            set(&self.cpu, used);
            self.note_gap(time - seen);
            self.note_cpu();
            seen = time;
            if used >= end {
                return;
            }
            calculate(end - used);
        }
    }

    /// Forgets the longest gap, and measures it from here on.
    pub fn forget_gap(&self) {
        set(&self.longest_gap, Duration::ZERO);
    }

    fn note_gap(&self, gap: Duration) {
        if gap > self.longest_gap() {
            set(&self.longest_gap, gap);
        }
    }

    /// Reports the caller's CPU.
    pub fn note_cpu(&self) {
        // SAFETY: takes no arguments and accesses no memory of this process.
        let cpu = unsafe { libc::sched_getcpu() };
        self.cpu_number.store(cpu.unsigned_abs().into(), Relaxed);
    }

    /// Asks the process and its forked children to end.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Returns whether the process has been asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Returns when the process started to run, or `None` before.
    pub fn started(&self) -> Option<Duration> {
        Some(get(&self.started)).filter(|time| !time.is_zero())
    }

    /// Returns when the process ended its work, or `None` before.
    pub fn ended(&self) -> Option<Duration> {
        Some(get(&self.ended)).filter(|time| !time.is_zero())
    }

    /// Returns the CPU time that the process last reported.
    pub fn cpu(&self) -> Duration {
        get(&self.cpu)
    }

    /// Returns how often the process was preempted.
    pub fn involuntary(&self) -> u64 {
        self.involuntary.load(Relaxed)
    }

    /// Returns the longest time that a burning process was without a CPU.
    pub fn longest_gap(&self) -> Duration {
        get(&self.longest_gap)
    }

    /// Returns the last CPU that a burning process reported.
    pub fn cpu_number(&self) -> usize {
        self.cpu_number.load(Relaxed) as usize
    }
}

fn set(word: &AtomicU64, time: Duration) {
    word.store(time.as_nanos() as u64, Relaxed);
}

fn get(word: &AtomicU64) -> Duration {
    Duration::from_nanos(word.load(Relaxed))
}

/// A report in memory that children share with their parent.
pub struct SharedReport(NonNull<Report>);

impl SharedReport {
    /// Makes an empty report.
    ///
    /// # Errors
    ///
    /// Out of memory.
    pub fn new() -> Result<Self> {
        let length = size_of::<Report>().try_into()?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a mapping of its own, at an address that the kernel chooses.
        let memory = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_SHARED) }
            .context("cannot share memory with a child")?;
        Ok(Self(memory.cast()))
    }
}

impl Deref for SharedReport {
    type Target = Report;

    fn deref(&self) -> &Report {
        // SAFETY: mapped until drop, page-aligned, and zero bytes are a valid
        // Report; what the child changes meanwhile is atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedReport {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more: references live no longer than
        // self. A child has a mapping of its own.
        let _ = unsafe { munmap(self.0.cast(), size_of::<Report>()) };
    }
}
