//! How to replay a trace, and the names of the processes of a replay.

use super::cgroup::Limits;
use super::realtime::ChildPolicy;
use super::refill::Amounts;
use faas_data::fixed::Kernel;
use faas_data::kind::Defaults;
use faas_data::trace::{Phase, Trace};
use faas_fixed::rates::Rates;

/// The hidden first argument that turns this program into a dispatcher.
pub const DISPATCH: &str = "__dispatch";

/// The hidden first argument that turns this program into a keeper.
pub const KEEP: &str = "__keep";

/// The hidden first argument that turns this program into one that calibrates
/// fixed work.
pub const CALIBRATE: &str = "__calibrate";

/// The hidden first argument that turns this program into a peer.
pub const PEER: &str = "__peer";

/// What serves invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandboxes {
    /// A process per invocation.
    Process,
    /// Processes that serve requests one after the other.
    Warm(Warm),
}

/// The parameters of warm sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warm {
    /// Number of sandboxes of each function started before the replay.
    pub prestart: u32,
    /// Whether each request gets a process forked by the sandbox.
    pub forks: bool,
    /// The limits of each sandbox's cgroup, if it has one.
    pub cgroup: Option<Limits>,
}

/// How to replay a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The scheduling policy of the processes that serve invocations.
    pub policy: ChildPolicy,
    /// Number of CPUs to restrict them to, 0 for all.
    pub pin: u32,
    /// What serves invocations.
    pub sandboxes: Sandboxes,
    /// The kinds of phases for which the trace has none.
    pub defaults: Defaults,
    /// What fixed work takes alone ([`crate::calibrate`]); all 0 without any.
    pub rates: Rates,
    /// How demands grow at switches, if they do.
    pub refill: Option<Amounts>,
}

impl Setup {
    /// The parameters of warm sandboxes, if there are any.
    pub fn warm(&self) -> Option<Warm> {
        match self.sandboxes {
            Sandboxes::Process => None,
            Sandboxes::Warm(warm) => Some(warm),
        }
    }

    /// Whether `wanted` holds for any phase.
    pub fn any(&self, trace: &Trace, wanted: impl Fn(Phase) -> bool) -> bool {
        let phases = trace.invocations.iter().flat_map(|one| &one.phases);
        phases.copied().any(|phase| wanted(self.decide(phase)))
    }

    /// The kinds of fixed work of the trace, in the order of their numbers.
    pub fn kernels(&self, trace: &Trace) -> Vec<Kernel> {
        let is_used = |kernel: &Kernel| self.any(trace, |phase| phase.fixed() == Some(*kernel));
        Kernel::ALL.into_iter().filter(is_used).collect()
    }

    /// What fixed work takes alone in what serves the invocations.
    pub fn rates(&self) -> Rates {
        match self.warm() {
            None => self.rates,
            Some(warm) => self.rates.warm(warm.forks),
        }
    }

    /// The phase with its kind.
    pub fn decide(&self, phase: Phase) -> Phase {
        match phase {
            Phase::Cpu { us, work } => Phase::Cpu {
                us,
                work: work.or(Some(self.defaults.work)),
            },
            Phase::Io { us, blocking } => Phase::Io {
                us,
                blocking: blocking.or(Some(self.defaults.blocking)),
            },
        }
    }
}
