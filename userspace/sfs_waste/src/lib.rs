//! Detects wasted CPUs: a CPU idles while a task waits that may run on it.
//! After Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores" (EuroSys
//! 2016), but from every context switch and wake-up instead of samples, so it
//! works for any scheduler.
//!
//! A BPF program ([`Watch`]) reports the events, [`account`] computes the
//! wasted time, and [`waits`] measures each wait, with or without idle CPUs.
//! The program `sfs_waste` prints the wasted time.

pub mod account;
mod bpf_intf;
mod bpf_skel;
pub mod report;
pub mod waits;
mod watch;
mod words;

pub use report::{Report, Span, Stretch};
pub use waits::{Kind, Runner, Wait};
pub use watch::Watch;
pub use words::total;
