//! Exact simulation of schedulers on a trace: the best possible scheduler, and
//! the policies of the literature.
//!
//! The input is a [`trace`](faas_data::trace). An [`engine`] makes its
//! invocations arrive, compute and block, a [`policy`] decides which of them
//! have the CPUs, and [`result`] writes the outcome in the format that
//! faasbench summarizes. All CPUs are equal and nothing has overhead: no
//! switch, no migration, no start of a process. The difference between a live
//! scheduler and its simulation is therefore the cost of these.
//!
//! # Example
//!
//! ```
//! use sfs_sim::policy::{Kind, Settings};
//! use faas_data::trace::Invocation;
//!
//! // A long invocation, and a short one right behind it, on one CPU.
//! let trace = [Invocation::cpu(0, "long", 900), Invocation::cpu(100, "short", 50)];
//! let ends = |kind| {
//!     let outcomes = sfs_sim::simulate(&trace, kind, &Settings::new(1)).unwrap();
//!     (outcomes[0].end_us(), outcomes[1].end_us())
//! };
//! assert_eq!(ends(Kind::Fifo), (900, 950));
//! assert_eq!(ends(Kind::Srtf), (950, 150));
//! ```

#![forbid(unsafe_code)]

pub mod cli;
pub mod compare;
pub mod durations;
pub mod engine;
pub mod job;
pub mod policy;
pub mod result;
pub mod shards;
pub mod time;

pub use engine::{simulate, simulate_watched, SimError};
pub use job::Outcome;
