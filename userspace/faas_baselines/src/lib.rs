//! What a sceptic compares a scheduler with: the kernel's own scheduler with other settings,
//! and daemons that steer it from user space.
//!
//! - [`name`]: names of rows with settings, as `eevdf(slice=10ms)`.
//! - [`tuning`] writes the settings of a row into the kernel, and [`keeper`] puts back what
//!   was there, whatever happens to the benchmark.
//! - [`rule`] has the rules of the daemons, without I/O: [`rule::demoter`] for `renice` and
//!   `idle`, [`rule::original`] for `sfs-user`. [`steer`] is the daemon around them: it learns
//!   of processes from the kernel ([`events`]), and changes their class ([`calls`]).
//! - [`machine`] reads what a summary says about the kernel.
//!
//! Keeper and daemon are the caller's program, started again: its `main` must begin with
//! [`play_role`].

#![deny(unsafe_code)]

pub mod calls;
pub mod events;
pub mod keeper;
pub mod machine;
pub mod name;
pub mod rule;
pub mod steer;
pub mod tuning;

use std::ffi::OsString;
use std::process::ExitCode;

/// The hidden first argument that turns this program into a [`keeper`].
pub(crate) const KEEP: &str = "__keep_settings";

/// The hidden first argument that turns this program into a [`steer`] daemon.
pub(crate) const STEER: &str = "__steer";

/// Plays the role that the arguments of this program (without its name) select, and returns
/// the exit code. `None` if they select none.
pub fn play_role(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let role = args.next()?;
    let plan = args.next().unwrap_or_default();
    let plan = plan.to_string_lossy();
    match role.to_str()? {
        KEEP => Some(keeper::main(&plan)),
        STEER => Some(steer::main(&plan)),
        _ => None,
    }
}
