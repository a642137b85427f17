//! What goes wrong on a machine, if somebody asks for it.

/// Faults of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Kicks do not arrive.
    pub lost_kicks: bool,
    /// The kernel half is not told that a CPU is taken.
    pub lost_releases: bool,
    /// The loader is not woken up when a ring buffer has something to read.
    pub lost_events: bool,
    /// Tasks cannot be moved from one queue to another.
    pub stuck_queues: bool,
    /// Timers fire 20 ms late.
    pub late_timers: bool,
}
