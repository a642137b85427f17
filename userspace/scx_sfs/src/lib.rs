//! The loader of scx_sfs without its `main()`. It is a library so that tests, examples and fuzz
//! targets can use its parts. Only `sfs_testbed` is meant to depend on it.
#![allow(
    clippy::len_without_is_empty,
    reason = "the modules are public for tests and fuzz targets, not an interface"
)]

use std::io::{self, Write};

use scx_utils::build_id;
use sfs_text::LINE_CHARS;

pub mod boundary;
pub mod bpf_intf;
pub mod bpf_skel;
pub mod cgroups;
pub mod control;
pub mod counters;
pub mod cpus;
pub mod exit;
pub mod exit_text;
pub mod hint_command;
pub mod hints;
pub mod history;
pub mod iat;
pub mod kernel;
pub mod learn;
pub mod left_out;
pub mod logging;
pub mod names;
pub mod options;
pub mod preflight;
pub mod program;
pub mod quota;
pub mod realtime;
pub mod service;
pub mod settings;
pub mod shards;
pub mod signals;
pub mod stats;

/// The scheduler's name, in the style of the scx schedulers.
pub const NAME: &str = "scx_sfs";

/// Writes one line to standard error and escapes its content if needed. A failed write (full
/// disk, closed terminal) does not stop the scheduler.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{}", sfs_text::line(line, LINE_CHARS));
}

/// Returns the program's version, with its commit and build target.
pub fn version() -> String {
    build_id::full_version(env!("CARGO_PKG_VERSION"))
}
