//! Conversion of options to settings.

use std::num::NonZeroUsize;

use anyhow::{Context, Result};
use sfs_policy::{OverloadPolicy, SlicePolicy};

use super::{Options, NS_PER_MS, NS_PER_US};
use crate::settings::Settings;
use sfs_bpf::kernel::Tunables;

impl Options {
    /// Converts the options to the settings of a run.
    ///
    /// # Errors
    ///
    /// Options contradict each other.
    pub fn settings(&self) -> Result<Settings> {
        let slice = match self.slice_us {
            Some(us) => SlicePolicy::fixed(us * NS_PER_US),
            None => SlicePolicy::new(self.slice_min_us * NS_PER_US, self.slice_max_us * NS_PER_US),
        }
        .context("--slice-min-us and --slice-max-us contradict each other")?;
        let overload = (!self.no_overload)
            .then(|| OverloadPolicy::with_factor(self.overload_factor))
            .transpose()
            .context("--overload-factor is out of range")?;
        let window = NonZeroUsize::new(self.iat_window as usize).context("--iat-window is 0")?;
        Ok(Settings {
            slice,
            overload,
            window,
            tunables: self.tunables(),
            sandboxes: self.cgroup.clone(),
            learn_state: self.learn_state.clone(),
            log_slice: self.log_slice,
        })
    }

    /// Returns the settings of the kernel half.
    fn tunables(&self) -> Tunables {
        Tunables {
            policy: self.policy,
            fair_slice_ns: self.fair_slice_us * NS_PER_US,
            fair_max_wait_ns: self.fair_max_wait_ms * NS_PER_MS,
            iat_window: self.iat_window,
            overload: !self.no_overload,
            shards: self.filter_shards,
            ageing_tenths: (self.ageing * 10.0).round() as u32,
            unit: self.unit,
            boundaries: self.boundaries().collect(),
            identity: self.identity(),
            only_sandboxes: !self.cgroup.is_empty(),
            idle_boundary_ns: self.idle_boundary_ms * NS_PER_MS,
            receive_port: self.receive_port,
            max_sandboxes: self.max_sandboxes,
            max_cgroups: self.max_cgroups,
            ignore_quotas: self.ignore_quotas,
            partial: self.partial,
            exit_dump_len: self.exit_dump_len,
            debug: self.debug,
            verifier_statistics: self.verbose,
            libbpf: self.libbpf.clone(),
        }
    }
}
