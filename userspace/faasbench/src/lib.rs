//! Workloads for function schedulers: generate, convert, replay, measure,
//! summarise and plot.
//!
//! A [`trace`](faas_data::trace) says what arrives when and what it needs.
//! [`faas_workload`] makes traces; [`work`] is what functions do in their time. [`run`] sets a scheduler up ([`scheduler`]), has the trace replayed by a process of
//! its own ([`replay`]), or sent to a platform ([`drive`]), and writes what it measured
//! ([`result`](faas_data::result)), also of the CPUs' time ([`waste`]), and its
//! [`summary`](faas_data::summary). [`faas_report`] compares several summaries.
//!
//! The formats, and what their words mean, are [`faas_data`]'s.

pub mod channel;
pub mod cli;
pub mod clock;
pub mod drive;
pub mod replay;
pub mod run;
pub mod scheduler;
pub mod waste;
pub mod work;
