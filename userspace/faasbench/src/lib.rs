//! Workloads for function schedulers: generate, convert, replay, measure,
//! summarise and plot.
//!
//! A [`trace`] says what arrives when and what it needs. [`workload`] makes
//! traces, [`convert`] reads those of others; [`kind`] and [`work`] are about
//! what functions do in their time. [`run`] sets a scheduler up
//! ([`scheduler`]), has the trace replayed by a process of its own
//! ([`replay`]), or sent to a platform ([`drive`]), and writes what it measured ([`result`]),
//! also of the CPUs' time ([`waste`]). [`summary`] does the arithmetic on one result,
//! [`report`] compares several summaries.

pub mod cli;
pub mod convert;
pub mod drive;
pub mod fib;
pub mod input;
pub mod kind;
pub mod output;
pub mod progress;
pub mod replay;
pub mod report;
pub mod result;
pub mod run;
pub mod scheduler;
pub mod summary;
pub mod trace;
pub mod waste;
pub mod work;
pub mod workload;
