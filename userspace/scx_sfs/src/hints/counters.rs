//! What has been counted about hints.

use std::fmt;

/// Counters since the listener has been there. Every hint that was received is
/// in exactly one of `applied`, `stale`, `foreign`, `dead` and `failed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HintCounters {
    /// Hints that could be read.
    pub received: u64,
    /// Those that have begun an invocation.
    pub applied: u64,
    /// Those whose time of arrival is too long ago, in the future, or known, and those
    /// for a process that started at another time than they say.
    pub stale: u64,
    /// Those for a process that is no function.
    pub foreign: u64,
    /// Those for a process that there is not.
    pub dead: u64,
    /// Those that the kernel half could not be told of.
    pub failed: u64,
    /// Lines, binary records and datagrams that could not be read.
    pub malformed: u64,
    /// Datagrams that the system has dropped because the socket was full. Only
    /// known for UDP: at a Unix socket it is the sender who is told.
    pub dropped: u64,
    /// Datagrams that were not read, since nobody has allowed their senders to send hints.
    pub denied: u64,
    /// Hints, and what cannot be read, beyond the rate that a sender may have.
    pub limited: u64,
    /// Service times that were not used, since nobody has allowed that; the rest of their
    /// hints was.
    pub service_times_ignored: u64,
}

impl fmt::Display for HintCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} received, {} applied, {} stale, {} foreign, {} dead, {} failed; \
             {} malformed, {} dropped, {} denied, {} beyond the rate; \
             {} service times not used",
            self.received,
            self.applied,
            self.stale,
            self.foreign,
            self.dead,
            self.failed,
            self.malformed,
            self.dropped,
            self.denied,
            self.limited,
            self.service_times_ignored,
        )
    }
}
