//! `scx_sfs advise`: watches a machine under its present scheduler, and says what scx_sfs would
//! change there. It loads no scheduler.
//!
//! | module | purpose |
//! |---|---|
//! | [`recorder`] | the BPF program that records processes: loaded, read |
//! | [`recording`] | what was recorded, as invocations |
//! | [`machine`] | the present scheduler, and the number of CPUs |
//! | [`seen`] | figures of what was recorded |
//! | [`prediction`] | the recording replayed under each scheduler |
//! | [`replayer`] | one replay on the simulated kernel, in a process of its own |
//! | [`verdict`] | whether scx_sfs is worth it, in sentences |
//! | [`report`] | all of it, as text and as JSON |

mod bpf_intf;
mod bpf_skel;
pub mod machine;
pub mod prediction;
pub mod process;
pub mod program;
pub mod recorder;
pub mod recording;
pub mod replayer;
pub mod report;
pub mod seen;
pub mod text;
pub mod verdict;
pub mod watch;
