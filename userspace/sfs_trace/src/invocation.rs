//! An invocation and its segments.

use crate::cpus::Cpus;
use crate::kind::{Kind, KINDS};

/// A stretch of time in which an invocation did one thing. Times in ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// What it did.
    pub kind: Kind,
    /// Its start.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

/// An invocation: its segments cover the time from `begin` to `end` without gap or overlap, and
/// `sums` has their lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Its number in this watch, from 1.
    pub serial: u64,
    /// Its unit.
    pub unit: u64,
    /// Its number within the unit.
    pub seq: u32,
    /// A process that serves it.
    pub pid: i32,
    /// Number of its function in the roster.
    pub who: u32,
    /// Id of the cgroup of that process.
    pub cgroup: u64,
    /// Its arrival.
    pub begin: u64,
    /// Its completion, or the end of the watch.
    pub end: u64,
    /// Whether it was seen to end.
    pub finished: bool,
    /// Time by kind, in the order of [`Kind::ALL`], in ns.
    pub sums: [u64; KINDS],
    /// Its segments in order, as far as there was room.
    pub segments: Vec<Segment>,
    /// Number of segments for which there was no room; `sums` has their times.
    pub unrecorded: u64,
    /// The CPUs that it may use; None: all.
    pub cpus: Option<Box<Cpus>>,
    /// Id of the cgroup whose quota parked it last; 0: none.
    pub parked_by: u64,
}

impl Invocation {
    /// Returns the time from its arrival to its end in ns.
    pub fn turnaround(&self) -> u64 {
        self.end - self.begin
    }

    /// Returns its time in `kind` in ns.
    pub fn time(&self, kind: Kind) -> u64 {
        self.sums[kind.index()]
    }

    /// Returns the part of its turnaround since the watch began, in ns.
    pub fn seen(&self) -> u64 {
        self.turnaround() - self.time(Kind::Before)
    }

    /// Adds a segment that follows the others. `room` is the number of segments for which there is
    /// room in all invocations together.
    pub(crate) fn add(&mut self, segment: Segment, room: &mut usize) {
        debug_assert_eq!(segment.from, self.end);
        if segment.from == segment.to {
            return;
        }
        self.end = segment.to;
        self.sums[segment.kind.index()] += segment.to - segment.from;
        if let Some(last) = self.segments.last_mut() {
            if last.kind == segment.kind && last.to == segment.from {
                last.to = segment.to;
                return;
            }
        }
        if *room == 0 {
            self.unrecorded += 1;
            return;
        }
        *room -= 1;
        self.segments.push(segment);
    }
}
