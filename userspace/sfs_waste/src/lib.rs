//! Watches for wasted CPUs: a CPU that idles while a task waits that may run on it. After
//! Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores" (EuroSys 2016), but from
//! every context switch and wake-up instead of samples, and so for any scheduler.
//!
//! A BPF program ([`Watch`]) tells of the events, [`account`] works out what was wasted, and
//! [`waits`] who waited for how long, idle CPUs or not. The program `sfs_waste` prints the
//! former.

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
