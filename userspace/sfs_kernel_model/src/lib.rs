//! The kernel half on a model of the kernel.
//!
//! `scheds/sfs_bpf/sfs.bpf.c` is compiled for the host as it is, against headers that stand in for
//! BPF's helpers (`c/`), and runs on a model of sched_ext's core ([`sched`]): tasks, run queues,
//! dispatch queues, ticks, kicks, timers, control groups. All of it is in [`state`]. What runs on
//! it is drawn in [`workload`]. `sfs_model` lets time pass.

pub mod bypass;
pub mod change;
pub mod ffi;
pub mod group_events;
pub mod group_ffi;
pub mod group_moves;
pub mod groups;
pub mod helpers;
pub mod higher;
pub mod life;
pub mod lines;
pub mod loader_ffi;
pub mod map_helpers;
pub mod oddities;
pub mod program;
pub mod promises;
pub mod race;
pub mod reader;
pub mod replay;
pub mod sched;
pub mod social;
pub mod state;
pub mod stay;
pub mod steady;
pub mod task_work;
pub mod tasks;
pub mod timeline;
pub mod virtual_time;
pub mod workload;

pub use sfs_kernel_draws::{group_load, topology};
