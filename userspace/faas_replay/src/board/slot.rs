//! The part of the board that belongs to one invocation.

use super::{nonzero, Board, COMPLETED};
use crate::meter::Usage;
use crate::refill::Counts;
use faas_data::kind::{Blocking, Defaults, Work};
use faas_data::trace::Phase;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

// Words of a slot.
pub(super) const ARRIVAL: usize = 0;
pub(super) const PHASES: usize = 1;
const FORKED: usize = 2;
const START: usize = 3;
const END: usize = 4;
const CPU: usize = 5;
const SWITCHES: usize = 6;
const STATE: usize = 7;
const WAIT: usize = 8;
pub(super) const FUNCTION: usize = 9;
const RUNNABLE: usize = 10;
const ACCOUNTED: usize = 11;
const REFILLS: usize = 12;
pub(super) const SLOT: usize = 14;

// The state of a slot is one of these plus a 32-bit value.
const EXITED: u64 = 1 << 32;
const KILLED: u64 = 2 << 32;

// A phase is its time, below the number of its kind; the top bit means that it
// blocks.
const BLOCKS: u64 = 1 << 63;
const KIND_SHIFT: u32 = 56;
const KIND_MASK: u64 = 0x7f;
const TIME_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// A phase, with its kind, as a word.
pub(super) fn pack(phase: &Phase, defaults: Defaults) -> u64 {
    match phase {
        Phase::Cpu { us, work } => us | work.unwrap_or(defaults.work).number() << KIND_SHIFT,
        Phase::Io { us, blocking } => {
            let kind = blocking.unwrap_or(defaults.blocking);
            us | kind.number() << KIND_SHIFT | BLOCKS
        }
    }
}

/// The phase in a word.
fn unpack(word: u64) -> Phase {
    let us = word & TIME_MASK;
    let kind = word >> KIND_SHIFT & KIND_MASK;
    match word & BLOCKS {
        0 => Phase::Cpu {
            us,
            work: Some(Work::from_number(kind)),
        },
        _ => Phase::Io {
            us,
            blocking: Some(Blocking::from_number(kind)),
        },
    }
}

/// The outcome of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its process exited with this code.
    Exited(u32),
    /// This signal ended its process.
    Killed(u32),
    /// Its process could not be started: errno, or 0 if it was never tried.
    NotForked(u32),
}

impl State {
    /// The state as a number; 0 only if it was never tried.
    pub fn pack(self) -> u64 {
        match self {
            Self::Exited(code) => EXITED | u64::from(code),
            Self::Killed(signal) => KILLED | u64::from(signal),
            Self::NotForked(errno) => u64::from(errno),
        }
    }

    /// The state from a number of [`State::pack`].
    pub fn unpack(word: u64) -> Self {
        let value = word as u32;
        match word - u64::from(value) {
            EXITED => Self::Exited(value),
            KILLED => Self::Killed(value),
            _ => Self::NotForked(value),
        }
    }
}

/// The part of the board that belongs to one invocation.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    pub(super) board: &'a Board,
    pub(super) words: &'a [AtomicU64],
}

impl Slot<'_> {
    /// Planned arrival in nanoseconds since the origin.
    pub fn arrival_ns(&self) -> u64 {
        self.words[ARRIVAL].load(Relaxed)
    }

    /// Appends its phases to `phases`.
    pub fn phases(&self, phases: &mut Vec<Phase>) {
        let range = self.words[PHASES].load(Relaxed);
        let (first, count) = ((range >> 32) as usize, range as u32 as usize);
        for word in &self.board.words[first..first + count] {
            phases.push(unpack(word.load(Relaxed)));
        }
    }

    /// The number of its function.
    pub fn function(&self) -> u32 {
        self.words[FUNCTION].load(Relaxed) as u32
    }

    /// When it was forked, or its request sent, on the monotonic clock.
    pub fn forked_ns(&self) -> Option<u64> {
        nonzero(self.words[FORKED].load(Relaxed))
    }

    /// Written by the dispatcher just before the fork or the request.
    pub fn set_forked_ns(&self, ns: u64) {
        self.words[FORKED].store(ns, Relaxed);
    }

    /// When it first ran, on the monotonic clock.
    pub fn start_ns(&self) -> Option<u64> {
        nonzero(self.words[START].load(Relaxed))
    }

    /// Written by the child or sandbox at its start.
    pub fn set_start_ns(&self, ns: u64) {
        self.words[START].store(ns, Relaxed);
    }

    /// When it completed, on the monotonic clock.
    pub fn end_ns(&self) -> Option<u64> {
        nonzero(self.words[END].load(Relaxed))
    }

    /// Written by the child or sandbox at the end.
    pub fn set_end_ns(&self, ns: u64) {
        self.words[END].store(ns, Relaxed);
    }

    /// Time for which it was runnable without running, in nanoseconds. For a
    /// process of its own: its lifetime minus the times that it ran and
    /// blocked.
    pub fn wait_ns(&self) -> Option<u64> {
        let counted = nonzero(self.words[WAIT].load(Relaxed)).map(|ns| ns - 1);
        counted.or_else(|| {
            let began_ns = nonzero(self.words[RUNNABLE].load(Relaxed))?;
            let accounted_ns = nonzero(self.words[ACCOUNTED].load(Relaxed))?;
            Some(self.end_ns()?.saturating_sub(began_ns + accounted_ns))
        })
    }

    /// When its process was forked, on the monotonic clock; written by the parent.
    pub fn set_runnable_ns(&self, ns: u64) {
        self.words[RUNNABLE].store(ns, Relaxed);
    }

    /// Time for which its process had run or blocked by its end; written by
    /// that process, if known.
    pub fn set_accounted_ns(&self, ns: Option<u64>) {
        self.words[ACCOUNTED].store(ns.unwrap_or(0), Relaxed);
    }

    /// Written by the sandbox, if the kernel reports it.
    pub fn set_wait_ns(&self, ns: Option<u64>) {
        self.words[WAIT].store(ns.map_or(0, |ns| ns + 1), Relaxed);
    }

    /// CPU time of its process in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.words[CPU].load(Relaxed)
    }

    /// Its voluntary context switches.
    pub fn voluntary(&self) -> u64 {
        self.words[SWITCHES].load(Relaxed) >> 32
    }

    /// Its involuntary context switches.
    pub fn involuntary(&self) -> u64 {
        self.words[SWITCHES].load(Relaxed) & 0xffff_ffff
    }

    /// The switches for which its demand has grown.
    pub fn refills(&self) -> Counts {
        Counts(std::array::from_fn(|kind| {
            let word = self.words[REFILLS + kind / 2].load(Relaxed);
            word >> (kind % 2 * 32) & 0xffff_ffff
        }))
    }

    /// Written by the child or sandbox at the end, each number up to 32 bits.
    pub fn set_refills(&self, counts: Counts) {
        for (place, pair) in counts.0.chunks(2).enumerate() {
            let number = |index: usize| pair[index].min(0xffff_ffff);
            self.words[REFILLS + place].store(number(0) | number(1) << 32, Relaxed);
        }
    }

    /// Its outcome.
    pub fn state(&self) -> State {
        State::unpack(self.words[STATE].load(Relaxed))
    }

    /// Written by the process that measured it, dispatcher or sandbox.
    pub fn set_usage(&self, usage: &Usage) {
        let voluntary = usage.voluntary.min(0xffff_ffff);
        let involuntary = usage.involuntary.min(0xffff_ffff);
        self.words[CPU].store(usage.cpu_us, Relaxed);
        self.words[SWITCHES].store(voluntary << 32 | involuntary, Relaxed);
    }

    /// Written by the dispatcher at the end.
    pub fn finish(&self, state: State) {
        self.words[STATE].store(state.pack(), Relaxed);
        self.board.words[COMPLETED].fetch_add(1, Relaxed);
    }
}
