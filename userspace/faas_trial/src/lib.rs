//! A trial of scx_sfs on one's own server, with figures that a sceptic can check.
//!
//! | module | content |
//! |---|---|
//! | [`plan`] | what is run, in which order, for how long |
//! | [`refuse`] | why a trial does not begin |
//! | [`guard`] | a process that ends a trial which has died, hangs or takes too long |
//! | [`calibrate`] | speeds of the CPUs, and costs of small things |
//! | [`costs`] | costs of small things with their spread, for `faasbench calibrate` |
//! | [`counters`] | cycles, instructions, misses, migrations |
//! | [`machine`] | what `/proc` and `/sys` tell |
//! | [`conduct`] | runs the plan |
//! | [`file`] | the file that is kept |
//! | [`analysis`] | what follows from it |
//! | [`verify`] | computes that again from a file, and finds what does not agree |
//! | [`show`] | all of it in words |
//!
//! A replay itself is the caller's [`conduct::Runner`]. Guard and calibration are the
//! caller's program, started again: its `main` must begin with [`play_role`].

#![forbid(unsafe_code)]

pub mod analysis;
pub mod calibrate;
pub mod conduct;
pub mod costs;
pub mod counters;
pub mod file;
pub mod guard;
pub mod machine;
pub mod plan;
pub mod refuse;
pub mod show;
pub mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

/// The hidden first argument that turns this program into the process that measures costs.
pub(crate) const COSTS: &str = "__trial_costs";

/// The hidden first argument that turns this program into a [`guard`].
pub(crate) const GUARD: &str = "__trial_guard";

/// Plays the role that the arguments of this program (without its name) select, and returns
/// the exit code. `None` if they select none.
pub fn play_role(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let role = args.next()?;
    let what = args.next().unwrap_or_default();
    let what = what.to_string_lossy();
    match role.to_str()? {
        COSTS => Some(calibrate::main(&what)),
        GUARD => Some(guard::main(&what)),
        _ => None,
    }
}
