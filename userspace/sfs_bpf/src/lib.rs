//! The kernel half as seen from Rust: builds it from `scheds/sfs_bpf`, checks
//! that this kernel can run it, loads and tunes it, passes hints, sandboxes and
//! ranks to it, and reads its arrivals, counters and end. It decides nothing:
//! the loader (`scx_sfs`) calls it.
//!
//! | module | purpose |
//! |---|---|
//! | [`preflight`] | checks before loading |
//! | [`kernel`] | loading, and calls of the kernel half |
//! | [`boundary`] | units, boundaries and identities, and the programs that watch boundaries |
//! | [`shards`], [`cpus`] | FILTER's shards, CPUs for functions |
//! | [`names`] | numbers for the names of functions |
//! | [`iat`], [`counters`] | arrivals and counters |
//! | [`exit`], [`exit_text`] | how it ended, exit statuses, and the kernel's text about it |
//! | [`bpf_intf`], [`bpf_skel`] | generated: types of `intf.h`, and the skeleton |
#![allow(
    clippy::len_without_is_empty,
    reason = "the modules are public for the loader only"
)]

use scx_utils::build_id;

pub mod boundary;
pub mod bpf_intf;
pub mod bpf_skel;
pub mod counters;
pub mod cpus;
pub mod exit;
pub mod exit_text;
pub mod iat;
pub mod kernel;
mod left_out;
pub mod names;
pub mod preflight;
mod realtime;
pub mod shards;

/// The scheduler's name, in the style of the scx schedulers.
pub const NAME: &str = "scx_sfs";

/// Returns the scheduler's version, with its commit and build target.
pub fn version() -> String {
    build_id::full_version(env!("CARGO_PKG_VERSION"))
}
