//! The policies: who has the CPUs.
//!
//! | policy | rule | preempts | source |
//! |---|---|---|---|
//! | [`ideal`] | every invocation has a CPU of its own | no | |
//! | [`srtf`] | shortest remaining service time first | yes | Schrage 1968 |
//! | [`ps`] | all share equally | | Kleinrock 1967 |
//! | [`fifo`] | in order, each to its end or until it blocks | no | |
//! | [`sfs`] | FILTER (in order, S of CPU time each) above FAIR (shared) | once | SFS, SC'22 |
//! | [`las`] | least attained service first, equals share | yes | Kleinrock 1976 |
//! | [`gittins`] | highest Gittins index first | yes | Gittins 1979 |
//! | [`learned`] | SFS until there are tables, then ranks learned from what completes | yes | |
//! | [`ranked`] | `known`, `mean`, `mlfq`: the same mechanics, other ranks | yes | |
//!
//! Only `ideal`, `srtf` (each invocation's duration), `gittins` (their
//! distribution) and `known` (each function's) know more than a scheduler can.
//! All but `ideal` are work-conserving.

pub mod fifo;
pub mod gittins;
pub mod ideal;
pub mod las;
pub mod learned;
pub mod pool;
pub mod ps;
pub mod ranked;
pub mod sfs;
pub mod srtf;

use crate::job::{Job, JobId};
use crate::time::Time;
use faas_data::trace::Invocation;
use ranked::{rule, Mechanics, Ranked};
use sfs_policy::learn::LearnConfig;
use sfs_policy::{defaults, OverloadPolicy, SlicePolicy};
use std::num::NonZeroUsize;

/// What the engine asks of a policy. Times are ticks.
pub trait Policy {
    /// `id` has arrived; [`ready`](Self::ready) follows when it wants a CPU.
    fn arrive(&mut self, _id: JobId, _now: Time) {}

    /// `id` wants `jobs[id].phase` of CPU time.
    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]);

    /// When the policy wants to be called next if nothing happens before: not
    /// before the last [`settle`](Self::settle), and at the same time only if
    /// there is progress then.
    fn next(&self) -> Option<Time>;

    /// Moves on to `now`, which is not later than [`next`](Self::next), and adds
    /// the invocations whose phase ends there to `ended`.
    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>);

    /// Decides who runs from `now` on.
    fn settle(&mut self, now: Time, jobs: &mut [Job]);
}

/// Defines [`Kind`]. Its names stand in one list: what else needs them, as the rows of
/// `make bench`, goes by [`Kind::ALL`].
macro_rules! kinds {
    ($($(#[$help:meta])* $kind:ident = $name:literal,)+) => {
        /// The policies by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
        pub enum Kind {
            $($(#[$help])* #[value(name = $name)] $kind,)+
        }

        impl Kind {
            /// All policies.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// No contention: every invocation has a CPU of its own
    Ideal = "ideal",
    /// Shortest remaining service time first, preemptive
    Srtf = "srtf",
    /// Processor sharing: each of n has min(1, CPUs / n) of a CPU
    Ps = "ps",
    /// In order of arrival, to the end
    Fifo = "fifo",
    /// SFS as in the paper: FILTER above processor sharing, S follows the arrivals
    Sfs = "sfs",
    /// SFS without fair-only mode under overload
    SfsNoHybrid = "sfs-no-hybrid",
    /// Least attained service first, preemptive; equals share
    Las = "las",
    /// Highest Gittins index first, preemptive
    Gittins = "gittins",
    /// scx_sfs with --policy learned: SFS until there are tables, then ranks by
    /// what each function was learned to need
    Learned = "learned",
    /// As learned, but each function's distribution in the trace is known
    Known = "known",
    /// Ranks by the mean of what each function has needed, in powers of two
    Mean = "mean",
    /// Ranks by doublings of what an invocation has had: many levels
    Mlfq = "mlfq",
}

impl Kind {
    /// The policy, ready to serve `trace`; none for `ideal`, which has nothing
    /// to decide.
    pub(crate) fn policy(
        self,
        trace: &[Invocation],
        settings: &Settings,
    ) -> Option<Box<dyn Policy>> {
        let cpus = settings.cpus;
        Some(match self {
            Self::Ideal => return None,
            Self::Ps => Box::new(ps::Ps::new(cpus)),
            Self::Srtf => Box::new(srtf::Srtf::new(cpus)),
            Self::Fifo => Box::new(fifo::Fifo::new(cpus)),
            Self::Sfs => Box::new(sfs::Sfs::new(settings, settings.overload)),
            Self::SfsNoHybrid => Box::new(sfs::Sfs::new(settings, None)),
            Self::Las => Box::new(las::Las::new(cpus)),
            Self::Gittins => Box::new(gittins::Gittins::new(cpus, &settings.durations_us, trace)),
            Self::Learned => Box::new(learned::Learned::new(settings, trace)),
            Self::Known => Box::new(Ranked::new(settings, rule::Known::new(settings, trace))),
            Self::Mean => Box::new(Ranked::new(settings, rule::Means::new(trace))),
            Self::Mlfq => Box::new(Ranked::new(settings, rule::Levels::doubling())),
        })
    }
}

/// What the policies need to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of CPUs, 1 or more.
    pub cpus: u32,
    /// `sfs`: how S follows from the mean IAT.
    pub slice: SlicePolicy,
    /// `sfs`: S before the first N arrivals, in ns.
    pub initial_slice_ns: u64,
    /// `sfs`: N, how many arrivals S is computed from, and after how many anew.
    pub window: NonZeroUsize,
    /// `sfs`: when FILTER is bypassed.
    pub overload: Option<OverloadPolicy>,
    /// `sfs`: whether time blocked uses up credit, as without the paper's
    /// handling of I/O.
    pub charge_io: bool,
    /// `gittins`: service times in microseconds whose distribution is known;
    /// empty: those of the trace itself.
    pub durations_us: Vec<u64>,
    /// `learned`: what completed before the trace, oldest first: functions by
    /// name, and service times in microseconds.
    pub history: Vec<(String, u64)>,
    /// `learned`: what is kept; `known`: the aim.
    pub learn: LearnConfig,
    /// `learned`, `known`, `mean` and `mlfq`: how ranks become an order.
    pub mechanics: Mechanics,
}

impl Settings {
    /// The defaults of scx_sfs and of the paper, for `cpus` CPUs.
    pub fn new(cpus: u32) -> Self {
        let bounds = SlicePolicy::new(defaults::SLICE_MIN_NS, defaults::SLICE_MAX_NS);
        Self {
            cpus,
            // The bounds are in order and neither 0 nor infinite.
            slice: bounds.expect("valid bounds"),
            initial_slice_ns: defaults::INITIAL_SLICE_NS,
            window: defaults::WINDOW,
            overload: Some(OverloadPolicy::default()),
            charge_io: false,
            durations_us: Vec::new(),
            history: Vec::new(),
            learn: LearnConfig::default(),
            mechanics: Mechanics::default(),
        }
    }
}
