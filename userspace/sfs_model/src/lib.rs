//! The kernel half in a model of the kernel.
//!
//! `scheds/sfs_bpf/sfs.bpf.c` is compiled for the host as it is, against headers that stand in for
//! BPF's helpers (`c/`), and runs on a model of sched_ext's core ([`sched`]): tasks, run queues,
//! dispatch queues, ticks, kicks, timers. A seed draws a machine and a workload ([`workload`]);
//! [`machine`] lets time pass and checks invariants. The same seed gives the same run.

mod change;
mod dsq;
mod ffi;
mod group_checks;
mod group_events;
mod group_ffi;
mod group_load;
mod group_moves;
mod groups;
mod helpers;
pub mod higher;
mod life;
pub mod limits;
mod loader;
pub mod machine;
mod maps;
mod program;
mod promises;
mod quota;
mod ringbuf;
mod sched;
pub mod search;
pub mod shrink;
pub mod social;
mod state;
mod stay;
mod steady;
mod task_work;
mod tasks;
mod timeline;
pub mod topology;
pub mod workload;
