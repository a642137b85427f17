//! Settings of a run, converted from the options to numbers and enums.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use sfs_policy::{defaults, Config, OverloadPolicy, SlicePolicy};

use sfs_bpf::boundary::Identity;
use sfs_bpf::kernel::{Slice, Tunables};
use sfs_cgroups::SandboxPattern;

/// Settings of a run of the scheduler.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How S is computed from the mean IAT.
    pub slice: SlicePolicy,
    /// When fair-only mode begins and ends; `None`: never.
    pub overload: Option<OverloadPolicy>,
    /// N.
    pub window: NonZeroUsize,
    /// Settings of the kernel half.
    pub tunables: Tunables,
    /// Patterns of sandboxes; if empty, functions are identified otherwise.
    pub sandboxes: Vec<SandboxPattern>,
    /// File for the learned state; `None`: not saved.
    pub learn_state: Option<PathBuf>,
    /// Whether S and the mode are logged for programs to read.
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

    /// Returns S = `slice_ns` with the values that follow from it.
    pub fn slice_of(&self, slice_ns: u64) -> Slice {
        Slice {
            slice_ns,
            overload_wait_ns: self.overload.map_or(u64::MAX, |o| o.enter_ns(slice_ns)),
            recover_wait_ns: self.overload.map_or(0, |o| o.exit_ns(slice_ns)),
        }
    }

    /// Returns whether functions are named after the sandbox's parent cgroup.
    pub fn names_by_parent(&self) -> bool {
        self.tunables.identity == Identity::Parent
    }
}
