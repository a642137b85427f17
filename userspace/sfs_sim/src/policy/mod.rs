//! The scheduling policies.
//!
//! | policy | rule | preempts | source |
//! |---|---|---|---|
//! | [`ideal`] | every invocation has its own CPU | no | |
//! | [`srtf`] | shortest remaining service time first | yes | Schrage 1968 |
//! | [`ps`] | all share equally | | Kleinrock 1967 |
//! | [`fifo`] | in order of arrival, each until it ends or blocks | no | |
//! | [`sfs`] | FILTER (in order, S of CPU time each) before FAIR (shared) | once | SFS, SC'22 |
//! | [`las`] | least attained service first, equals share | yes | Kleinrock 1976 |
//! | [`gittins`] | highest Gittins index first | yes | Gittins 1979 |
//! | [`ranked`] | `learned`: ranks learned from completions; `known`, `mean`, `mlfq`: other ranks | yes | |
//!
//! Four policies know more than a scheduler can: `ideal` and `srtf` (each
//! invocation's duration), `gittins` (the distribution of durations) and
//! `known` (the distribution of each function). All but `ideal` are
//! work-conserving.

pub mod fifo;
pub mod gittins;
pub mod ideal;
pub mod las;
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

/// The interface between the engine and a policy. Times are ticks.
pub trait Policy {
    /// `id` has arrived; [`ready`](Self::ready) follows when it wants a CPU.
    fn arrive(&mut self, _id: JobId, _now: Time) {}

    /// `id` wants `jobs[id].phase` of CPU time.
    fn ready(&mut self, id: JobId, now: Time, jobs: &mut [Job]);

    /// When the policy wants to be called next if nothing happens before. This
    /// is not before the last [`settle`](Self::settle), and at the same time
    /// only if that makes progress.
    fn next(&self) -> Option<Time>;

    /// Advances to `now`, which is not later than [`next`](Self::next), and
    /// adds the invocations whose phase ends then to `ended`.
    fn advance(&mut self, now: Time, jobs: &mut [Job], ended: &mut Vec<JobId>);

    /// Decides who runs from `now` on.
    fn settle(&mut self, now: Time, jobs: &mut [Job]);
}

/// Defines [`Kind`]. This list is the only place for the names; other users of
/// them, such as the rows of `make bench`, use [`Kind::ALL`].
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
    /// No contention: every invocation has its own CPU
    Ideal = "ideal",
    /// Shortest remaining service time first, preemptive
    Srtf = "srtf",
    /// Processor sharing: each of n invocations has min(1, CPUs / n) of a CPU
    Ps = "ps",
    /// First in, first out, without preemption
    Fifo = "fifo",
    /// SFS as in the paper: FILTER before processor sharing, S follows the
    /// arrivals
    Sfs = "sfs",
    /// SFS without fair-only mode under overload
    SfsNoHybrid = "sfs-no-hybrid",
    /// Least attained service first, preemptive; equals share
    Las = "las",
    /// Highest Gittins index first, preemptive
    Gittins = "gittins",
    /// scx_sfs with --policy learned: ranks by the learned service times of each
    /// function, and by attained service as long as none are known
    Learned = "learned",
    /// As learned, but with the distribution of each function in the trace
    /// known
    Known = "known",
    /// Ranks by the mean service time of each function so far, in powers of two
    Mean = "mean",
    /// Ranks by attained service in powers of two: a multilevel feedback queue
    Mlfq = "mlfq",
}

impl Kind {
    /// Creates the policy for `trace`; `None` for `ideal`, which decides
    /// nothing.
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
            Self::Learned => Box::new(Ranked::new(settings, rule::Learned::new(settings, trace))),
            Self::Known => Box::new(Ranked::new(settings, rule::Known::new(settings, trace))),
            Self::Mean => Box::new(Ranked::new(settings, rule::Means::new(trace))),
            Self::Mlfq => Box::new(Ranked::new(settings, rule::Levels::doubling())),
        })
    }
}

/// Parameters of the policies.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of CPUs, 1 or more.
    pub cpus: u32,
    /// `sfs`: how S follows from the mean IAT.
    pub slice: SlicePolicy,
    /// `sfs`: S before the first N arrivals, in ns.
    pub initial_slice_ns: u64,
    /// `sfs`: N; S is computed after every N arrivals, from those N.
    pub window: NonZeroUsize,
    /// `sfs`: when invocations bypass FILTER.
    pub overload: Option<OverloadPolicy>,
    /// `sfs`: whether time blocked also uses up credit, as without the paper's
    /// handling of I/O.
    pub charge_io: bool,
    /// `gittins`: service times in microseconds whose distribution is known; if
    /// empty, those of the trace.
    pub durations_us: Vec<u64>,
    /// `learned`: completions before the trace, oldest first: function names
    /// and service times in microseconds.
    pub history: Vec<(String, u64)>,
    /// `learned`: limits and parameters of learning; `known`: the aim.
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
            // The bounds are in order, not 0 and finite.
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
