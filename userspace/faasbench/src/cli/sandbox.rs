//! Options of `faasbench run` for sandboxes.

use super::choices::CgroupLayout;
use anyhow::{bail, Result};
use clap::{Args, ValueEnum};
use faas_replay::cgroup::Limits;
use faas_replay::setup::{Sandboxes, Warm};

/// Default `cpu.weight` of a cgroup: the kernel's.
const WEIGHT: u32 = 100;

#[derive(Debug, Args)]
pub(super) struct SandboxArgs {
    /// What serves the invocations
    #[arg(long, value_enum, default_value_t = Kind::Process, value_name = "KIND")]
    sandbox: Kind,
    /// warm, cgroup: number of sandboxes per function that are started before
    /// the replay, at most its number of invocations; default: the number of
    /// CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    prestart: Option<u32>,
    /// warm, cgroup: what serves a request
    #[arg(long, value_enum, value_name = "HOW")]
    handler: Option<Handler>,
    /// cgroup: cpu.weight of each sandbox (1 to 10000); default: 100
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cgroup_weight: Option<u32>,
    /// cgroup: CPU limit of each sandbox, in per cent of one CPU (1 to 409600);
    /// default: none
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=409_600))]
    cgroup_quota: Option<u32>,
    /// cgroup: layout of the sandboxes' cgroups; default: flat
    #[arg(long, value_enum, value_name = "HOW")]
    cgroup_layout: Option<CgroupLayout>,
}

/// What serves invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A process per invocation, forked at its arrival
    Process,
    /// A pool of processes per function that accept requests on a socket;
    /// another one is started when all are busy
    Warm,
    /// As warm, with each process in its own cgroup below ROOT/faasbench
    Cgroup,
}

/// What serves a request of a warm sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Handler {
    /// The sandbox itself
    Serve,
    /// A process that the sandbox forks for the request
    Fork,
}

impl SandboxArgs {
    /// What serves the invocations on `cpus` CPUs.
    pub(super) fn read(&self, cpus: u32) -> Result<Sandboxes> {
        let limited = self.cgroup_weight.is_some() || self.cgroup_quota.is_some();
        if self.sandbox != Kind::Cgroup && (limited || self.cgroup_layout.is_some()) {
            bail!("--cgroup-weight, --cgroup-quota and --cgroup-layout need --sandbox cgroup");
        }
        let cgroup = match self.sandbox {
            Kind::Process => {
                if self.prestart.is_some() || self.handler.is_some() {
                    bail!("--prestart and --handler need --sandbox warm or cgroup");
                }
                return Ok(Sandboxes::Process);
            }
            Kind::Warm => None,
            Kind::Cgroup => Some(Limits {
                weight: self.cgroup_weight.unwrap_or(WEIGHT),
                quota_percent: self.cgroup_quota,
                layout: self.cgroup_layout.unwrap_or(CgroupLayout::Flat).into(),
            }),
        };
        Ok(Sandboxes::Warm(Warm {
            prestart: self.prestart.unwrap_or(cpus),
            forks: self.handler == Some(Handler::Fork),
            cgroup,
        }))
    }
}
