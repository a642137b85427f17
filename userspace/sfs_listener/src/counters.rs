//! Counters of hints.

use std::fmt;

/// Passes the list of these counters to another macro: name in the code, name in the
/// statistics, description.
#[macro_export]
macro_rules! with_hint_counters {
    ($then:ident { $($given:tt)* } $($more:tt)*) => {
        $then! { $($given)* $($more)* hints {
            received = hints: "Hints received",
            applied = hints_applied: "Hints that began an invocation",
            stale = hints_stale: "Hints with an impossible or already known arrival time, or \
                 whose process started at another time",
            foreign = hints_foreign: "Hints for processes that are not functions",
            dead = hints_dead: "Hints for nonexistent processes",
            failed = hints_failed: "Hints that could not be passed to the kernel half",
            malformed = hints_malformed: "Lines, binary records and datagrams that are not hints",
            dropped = hints_dropped: "Datagrams with hints dropped by the system (UDP)",
            denied = hints_denied: "Datagrams of senders that are not allowed to send hints; \
                 not read",
            limited = hints_limited: "Hints dropped, since their sender exceeded --hint-rate",
            service_times_ignored = hints_service_ignored: "Ignored service times in hints \
                 (--hint-service-time uses them)",
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
