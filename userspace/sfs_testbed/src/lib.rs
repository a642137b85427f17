//! What any test in a guest kernel needs: processes, cgroups and servers that report what
//! happens to them; clocks, traces and the watch for wasted CPUs; a running scx_sfs; and
//! cases, each run in a process of its own. It knows no case: those are in
//! `sfs_function_cases`, `sfs_machine_cases` and `sfs_loader_cases`.

pub mod case;
pub mod cgroup;
pub mod clock;
pub mod kernel_log;
pub mod late_page;
pub mod perturbation;
pub mod process;
pub mod report;
pub mod runner;
pub mod scheduler;
pub mod section;
pub mod server;
pub mod skip;
pub mod surroundings;
pub mod trace;
pub mod waste;
pub mod words;
