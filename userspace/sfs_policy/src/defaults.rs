//! Defaults of scx_sfs's decisions, each declared once: for the loader's options and for the
//! simulation's. What the kernel half begins with as well stands in its `intf.h` too, which
//! this crate knows nothing of; `scx_sfs/tests/constants.rs` compares the two.

pub use crate::iat::DEFAULT_WINDOW as WINDOW;
pub use crate::learn::DEFAULT_FUNCTIONS as FUNCTIONS;

/// The shortest S, in ns.
pub const SLICE_MIN_NS: u64 = 1_000_000;

/// The longest S, in ns.
pub const SLICE_MAX_NS: u64 = 1_000_000_000;

/// S until the first window of arrivals is complete, in ns: between the short
/// and the long functions of every trace that we know of.
pub const INITIAL_SLICE_NS: u64 = 100_000_000;

/// The paper's O: a delay of O x S is overload.
pub const OVERLOAD_FACTOR: f64 = 3.0;

/// How many times what its completion costs equal sharing has to have given an invocation
/// before nothing that comes later goes before it.
pub const AGEING: f64 = 3.0;

/// Completions after which the tables of ranks are made anew. More often does no better
/// (docs/policy.md).
pub const REFRESH: u32 = 100;

/// Most different tables of ranks, the default table included.
pub const TABLES: u16 = 512;
