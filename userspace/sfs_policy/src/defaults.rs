//! Defaults of scx_sfs's decisions, each declared once, for the options of the loader and of
//! the simulation. Initial values of the kernel half are also in its `intf.h`, which this crate
//! does not use; `sfs_bpf/tests/constants.rs` compares the two.

use core::time::Duration;

pub use crate::iat::DEFAULT_WINDOW as WINDOW;
pub use crate::learn::DEFAULT_FUNCTIONS as FUNCTIONS;

/// The shortest S, in ns.
pub const SLICE_MIN_NS: u64 = 1_000_000;

/// The longest S, in ns.
pub const SLICE_MAX_NS: u64 = 1_000_000_000;

/// S until the first window of arrivals is complete, in ns: between the short and the long
/// functions of every trace known to us.
pub const INITIAL_SLICE_NS: u64 = 100_000_000;

/// The paper's O: a delay of O x S is overload.
pub const OVERLOAD_FACTOR: f64 = 3.0;

/// Once equal sharing would have given an invocation this many times the cost of its
/// completion, no later arrival goes before it.
pub const AGEING: f64 = 3.0;

/// Arrivals may take one part in so many of all CPUs from invocations past their deadlines.
pub const OVERTAKE_PART: u64 = 8;

/// So much of that part, in ns, may be taken in advance.
pub const OVERTAKE_NS: u64 = 200_000_000;

/// The shortest and the longest turn, in ns, that an arrival takes so.
pub const OVERTAKE_TURN_NS: (u64, u64) = (8_000_000, 20_000_000);

/// Number of functions whose tables are made in one go. This takes milliseconds.
pub const REFRESH_AT_A_TIME: usize = 500;

/// Longest time that completions wait until the loader learns from them.
pub const LEARN_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of different rank tables, including the default table.
pub const TABLES: u16 = 512;
