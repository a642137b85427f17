//! What a run of the scheduler is set to, in numbers and enums: what the options come to.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use sfs_policy::{defaults, Config, OverloadPolicy, SlicePolicy};

use crate::boundary::Identity;
use crate::cgroups::SandboxPattern;
use crate::kernel::{Slice, Tunables};

/// What a run of the scheduler is set to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How S follows from the mean IAT.
    pub slice: SlicePolicy,
    /// When fair-only mode goes on and off; `None`: never.
    pub overload: Option<OverloadPolicy>,
    /// N.
    pub window: NonZeroUsize,
    /// What the kernel half is set to.
    pub tunables: Tunables,
    /// Which cgroups are sandboxes; none: functions are told otherwise.
    pub sandboxes: Vec<SandboxPattern>,
    /// Where what is learned is kept; `None`: nowhere.
    pub learn_state: Option<PathBuf>,
    /// S and the mode are logged for programs to read.
    pub log_slice: bool,
}

impl Settings {
    /// Returns the configuration of a controller for `cpus` CPUs.
    pub fn config(&self, cpus: u32) -> Config {
        Config {
            window: self.window,
            slice: self.slice,
            initial_slice_ns: defaults::INITIAL_SLICE_NS,
            overload: self.overload,
            cpus,
        }
    }

    /// Returns an S of `slice_ns`, and what follows from it.
    pub fn slice_of(&self, slice_ns: u64) -> Slice {
        Slice {
            slice_ns,
            overload_wait_ns: self.overload.map_or(u64::MAX, |o| o.enter_ns(slice_ns)),
            recover_wait_ns: self.overload.map_or(0, |o| o.exit_ns(slice_ns)),
        }
    }

    /// Returns whether functions are named after the cgroup above that of the sandbox.
    pub fn names_by_parent(&self) -> bool {
        self.tunables.identity == Identity::Parent
    }
}
