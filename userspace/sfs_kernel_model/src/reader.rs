//! The process that reads what the kernel half reports: the loader, as far as the kernel knows it.

use crate::state::{CpuId, Event, State, TaskId};
use sfs_kernel_objects::ringbuf::Ring;
use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;

/// The interrupt that wakes up the reader of a ring buffer comes so much later, ns.
const IRQ_WORK_NS: u64 = 1_000;
const EAGAIN: i64 = -11;

/// What reaches the reader from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nudge {
    /// The interrupt for ring buffer 0 or 1, on a CPU.
    Ring(usize, CpuId),
    /// The sleep with this number has lasted as long as it should.
    SleepOver(u64),
    /// Somebody asks for statistics.
    Asked,
    /// The platform tells of requests.
    Hinted,
    /// From now on it does not answer for so many ns.
    Stall(u64),
    /// SIGKILL.
    Kill,
}

/// A process with the kernel half's ring buffers.
pub trait Reader: Any + Debug {
    /// Its task.
    fn task(&self) -> TaskId;

    /// Its ring buffer that is this map of the kernel half, and the number of it.
    fn ring(&mut self, map: *const c_void) -> Option<(usize, &mut Ring)>;

    /// It falls asleep at `now`. Returns the number of this sleep, and for how many ns it lasts;
    /// `None`: until something happens.
    fn falls_asleep(&mut self, now: u64) -> (u64, Option<u64>);
}

/// bpf_ringbuf_output(). Without a reader records are dropped.
pub fn output(s: &mut State, map: *const c_void, record: &[u8], flags: u64) -> i64 {
    let ring = s.reader.as_mut().and_then(|reader| reader.ring(map));
    let Some((number, ring)) = ring else {
        return 0;
    };
    match ring.output(record, flags) {
        None => EAGAIN,
        Some(wakes) => {
            if wakes && !s.faults.lost_events {
                // irq_work_queue(): on this CPU, as soon as interrupts are on.
                s.after(IRQ_WORK_NS, Event::Reader(Nudge::Ring(number, s.here)));
            }
            0
        }
    }
}

/// BPF_RB_AVAIL_DATA.
pub fn unread(s: &mut State, map: *const c_void) -> u64 {
    let ring = s.reader.as_mut().and_then(|reader| reader.ring(map));
    ring.map_or(0, |(_, ring)| ring.unread() as u64)
}

/// Called when a task has fallen asleep: returns true if it is the reader, whose sleep ends by
/// itself.
pub fn fell_asleep(s: &mut State, task: TaskId) -> bool {
    let now = s.now;
    let Some(reader) = s.reader.as_mut().filter(|reader| reader.task() == task) else {
        return false;
    };
    let (number, lasts) = reader.falls_asleep(now);
    if let Some(ns) = lasts {
        s.after(ns, Event::Reader(Nudge::SleepOver(number)));
    }
    true
}
