//! The benchmark's command line ([`cli`]), and runs of a scheduler under a
//! workload. [`run`] sets a scheduler up ([`scheduler`], [`session`]), replays a trace
//! ([`faas_replay`]) or sends it to a platform ([`drive`]), watches for wasted
//! CPUs ([`waste`]), and writes a [`result`](faas_data::result) and a
//! [`summary`](faas_data::summary).
//!
//! [`faas_workload`] makes traces, [`faas_report`] compares summaries, and
//! [`faas_data`] has the formats.

pub mod cli;
pub mod drive;
pub mod run;
pub mod scheduler;
pub mod session;
pub mod waste;
