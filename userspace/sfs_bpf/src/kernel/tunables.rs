//! Settings of the kernel half, made before it is loaded.

use std::fmt;

use clap::ValueEnum;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use serde::{Deserialize, Serialize};

use crate::boundary::{Boundary, Identity, Unit};
use crate::bpf_intf::{
    sfs_policy_kind_SFS_POLICY_FAIR as SFS_POLICY_FAIR,
    sfs_policy_kind_SFS_POLICY_LEARNED as SFS_POLICY_LEARNED,
    sfs_policy_kind_SFS_POLICY_SFS as SFS_POLICY_SFS,
};
use crate::shards::Shards;

/// How functions are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// First in, first out for S of CPU time, then fair shares.
    Sfs,
    /// By the learned service times of each function, and by attained service
    /// as long as none are known; as sfs if the kernel half rejects the ranks.
    Learned,
    /// Fair shares for all.
    Fair,
}

impl Policy {
    /// Returns the kernel half's number for it.
    pub fn number(self) -> u32 {
        match self {
            Self::Sfs => SFS_POLICY_SFS,
            Self::Learned => SFS_POLICY_LEARNED,
            Self::Fair => SFS_POLICY_FAIR,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// Settings of the kernel half, made before it is loaded. Ranges are those of the options of
/// the same names.
#[derive(Debug, Clone)]
pub struct Tunables {
    /// How functions are scheduled.
    pub policy: Policy,
    /// Length of a turn in FAIR, in ns.
    pub fair_slice_ns: u64,
    /// Longest wait of FAIR's head, in ns.
    pub fair_max_wait_ns: u64,
    /// N: number of arrivals after which the kernel half reports them.
    pub iat_window: u32,
    /// Whether the loader switches to fair-only mode under overload.
    pub overload: bool,
    /// Number of queues that FILTER is split into.
    pub shards: Shards,
    /// Weight of the cost in the deadline of ranked work, in tenths.
    pub ageing_tenths: u32,
    /// Which tasks share one credit.
    pub unit: Unit,
    /// Events that begin an invocation; includes hints if the loader listens for them.
    pub boundaries: Vec<Boundary>,
    /// How functions are told apart if no hint names them.
    pub identity: Identity,
    /// Only tasks in sandboxes are functions. Otherwise, all tasks started since loading are.
    pub only_sandboxes: bool,
    /// With [`Boundary::Idle`]: minimum sleep of a unit, in ns.
    pub idle_boundary_ns: u64,
    /// With [`Boundary::Receive`]: the port that a connection must use; 0: any.
    pub receive_port: u16,
    /// Maximum number of sandboxes at a time.
    pub max_sandboxes: u32,
    /// Maximum number of cgroups with a weight and a quota at a time.
    pub max_cgroups: u32,
    /// Schedule even if quotas are not enforced.
    pub ignore_quotas: bool,
    /// Schedule only tasks with policy SCHED_EXT.
    pub partial: bool,
    /// Length of the kernel's dump on an error exit, in bytes; 0: the kernel's default.
    pub exit_dump_len: u32,
    /// The kernel half logs demotions and mode switches to the trace pipe.
    pub debug: bool,
    /// libbpf reports the verifier's statistics for each program.
    pub verifier_statistics: bool,
    /// Further options for libbpf.
    pub libbpf: LibbpfOpts,
}

/// The three values derived from S, in ns of CPU time or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// S.
    pub slice_ns: u64,
    /// O x S: the queueing delay at which overload begins.
    pub overload_wait_ns: u64,
    /// The delay at which it is over.
    pub recover_wait_ns: u64,
}

/// When a scheduler was loaded and unloaded, in ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Start of loading.
    pub from: u64,
    /// Unloading; `u64::MAX`: not yet, or unknown.
    pub to: u64,
}
