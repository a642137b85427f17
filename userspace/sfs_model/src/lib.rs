//! Seeds of a machine under the kernel half.
//!
//! `sfs_kernel_model` has the kernel half on a model of sched_ext's core. Here a seed draws a
//! machine and a workload; [`machine`] lets time pass and checks invariants. A loader runs as one
//! of the machine's tasks, with the decisions of `sfs_policy`. [`search`] tries one seed after
//! another, and [`shrink`] makes what one finds small. The same seed gives the same run.

mod credit_checks;
mod group_checks;
pub mod limits;
mod loader;
pub mod machine;
pub mod replay;
pub mod search;
pub mod shrink;
