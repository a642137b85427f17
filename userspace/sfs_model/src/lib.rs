//! The kernel half in a model of the kernel.
//!
//! `scheds/sfs_bpf/sfs.bpf.c` is compiled for the host as it is, against headers that stand in for
//! BPF's helpers (`c/`), and runs on a model of sched_ext's core ([`sched`]): tasks, run queues,
//! dispatch queues, ticks, kicks, timers. A seed draws a machine and a workload ([`workload`]);
//! [`machine`] lets time pass and checks invariants. The same seed gives the same run.

mod dsq;
mod ffi;
mod group_checks;
mod group_events;
mod group_ffi;
mod group_load;
mod group_moves;
mod groups;
mod helpers;
pub mod machine;
mod maps;
mod quota;
mod sched;
pub mod search;
mod state;
mod steady;
mod task_work;
pub mod workload;
