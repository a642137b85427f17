//! The decisions of scx_sfs: IAT window, slice and overload, without I/O.
//!
//! The kernel half reports events (arrivals, queueing delays), this crate makes the decisions
//! (the slice S, fair-only mode), and the loader carries them out. Nothing here reads a clock,
//! touches a file, prints or starts a thread. The compiler guarantees this, since the crate is
//! `no_std`. The same decisions run in the loader, in the simulator and in tests.
//!
//! The specification is the text of the paper (SFS, SC'22: "SFS: Smart OS Scheduling for
//! Serverless Functions"), not its published artefact.
//!
//! | module | decision | paper |
//! |---|---|---|
//! | [`iat`] | the mean inter-arrival time (IAT) of the last N arrivals | adaptive slice |
//! | [`slice`](mod@slice) | S = mean IAT x CPUs, within bounds | adaptive slice |
//! | [`overload`] | fair-only mode while FILTER delays are O x S or longer | transient overload |
//! | [`learn`] | the rank of an invocation, from the past service times of its function | not in it |
//! | [`control`] | the time of each decision; interface for the loader | |
//! | [`defaults`] | default settings | |
//!
//! # Units
//!
//! All times and durations are `u64` nanoseconds, as in the kernel half. Arrivals are
//! timestamps of any one monotonic clock; only differences matter.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod control;
pub mod defaults;
pub mod error;
pub mod iat;
pub mod learn;
pub mod overload;
pub mod slice;

pub use control::{Config, Controller, Counters};
pub use error::PolicyError;
pub use iat::{IatWindow, DEFAULT_WINDOW};
pub use overload::{Mode, OverloadDetector, OverloadPolicy, Transition};
pub use slice::SlicePolicy;
