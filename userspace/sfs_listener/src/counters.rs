//! Counters of hints.

use std::fmt;

/// Passes the list of these counters to another macro: name in the code, name in the
/// statistics, description.
#[macro_export]
macro_rules! with_hint_counters {
    ($then:ident { $($given:tt)* } $($more:tt)*) => {
        $then! { $($given)* $($more)* hints {
            received = hints: "Hints received",
            applied = hints_applied: "Hints that have begun an invocation",
            stale = hints_stale: "Hints whose time of arrival cannot be true, or is known, or whose process started at another time",
            foreign = hints_foreign: "Hints for processes that are no functions",
            dead = hints_dead: "Hints for processes that there are not",
            failed = hints_failed: "Hints that the kernel half could not be told of",
            malformed = hints_malformed: "Lines, binary records and datagrams that are no hints",
            dropped = hints_dropped: "Datagrams with hints that the system has dropped (UDP)",
            denied = hints_denied: "Datagrams not read, since no hints are taken from their senders",
            limited = hints_limited: "Hints dropped, since their sender sends more than --hint-rate",
            service_times_ignored = hints_service_ignored: "Service times in hints that were ignored (--hint-service-time uses them)",
        } }
    };
}

macro_rules! counters {
    (hints { $($counter:ident = $published:ident: $text:tt,)* }) => {
        /// Counters since the listener was created. Each received hint is counted in exactly
        /// one of `applied`, `stale`, `foreign`, `dead` and `failed`.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct HintCounters {
            $(#[doc = $text] pub $counter: u64,)*
        }
    };
}
with_hint_counters! { counters {} }

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
