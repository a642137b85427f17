//! Exact simulation of schedulers on a trace: what the best possible scheduler
//! would do, and what the policies of the literature would.
//!
//! A [`trace`](faas_data::trace) is read, an [`engine`] lets its invocations arrive, compute
//! and block, a [`policy`] decides which of them have the CPUs, and [`result`] says what came
//! out, in the format that faasbench summarises. All CPUs are alike, and nothing costs
//! anything: no switch, no migration, no start of a process. What a live scheduler loses
//! against its simulation is therefore what these cost.
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
