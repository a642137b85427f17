//! Watches for wasted CPUs: a CPU that idles while a task waits that may run on it. After
//! Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores" (EuroSys 2016), but from
//! every context switch and wake-up instead of samples, and so for any scheduler.
//!
//! A BPF program ([`Watch`]) tells of the events, [`account`] works out what was wasted. The
//! program `sfs_waste` prints it.

pub mod account;
mod bpf_intf;
mod bpf_skel;
mod watch;
mod words;

pub use account::{Report, Span, Stretch};
pub use watch::Watch;
pub use words::total;
