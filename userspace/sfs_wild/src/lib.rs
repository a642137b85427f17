//! Workloads that nobody has chosen, each drawn from its seed: scx_sfs without an option beside
//! EEVDF and beside its own simulation, which has no kernel, no starter and no overhead. Where the
//! ratio to either is bad, there is something to look at.
//!
//! [`workload`] draws a workload, [`compare`] replays it, and [`page`] puts the worst first.

pub mod cli;
pub mod compare;
pub mod page;
pub mod workload;
