//! What a seed draws for the loader: its options, and what happens to it.

use rand_chacha::ChaCha8Rng;
use sfs_kernel_model::workload::between;
use sfs_policy::{defaults, OverloadPolicy, SlicePolicy};
use std::num::NonZeroUsize;

const MS: u64 = 1_000_000;
/// SFS_POLICY_LEARNED.
const LEARNED: u32 = 1;

/// A time at which something happens, and how long it lasts, in ns since boot and ns.
pub type Span = (u64, u64);

/// The loader of a seed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// N: arrivals between two computations of S.
    pub window: NonZeroUsize,
    /// The bounds of S.
    pub slice: SlicePolicy,
    /// When overload begins and ends; `None`: `--no-overload`.
    pub overload: Option<OverloadPolicy>,
    /// Mean CPU time of a step of its work, us.
    pub work_us: u64,
    /// It does not answer for so long.
    pub stalls: Option<Span>,
    /// When somebody kills it, ns after load.
    pub dies_ns: Option<u64>,
    /// Mean time between requests for statistics, ns; 0: none.
    pub readers_ns: u64,
    /// What it learns with `--policy learned`.
    pub learns: Option<Learns>,
}

/// What a seed draws for `--policy learned`.
#[derive(Debug, Clone, Copy)]
pub struct Learns {
    /// It begins with a state that it has saved before.
    pub is_restored: bool,
    /// The kernel refuses its tables from then on, ns after load.
    pub refused_ns: Option<u64>,
}

impl Plan {
    /// scx_sfs without options on a quiet machine, with `policy`.
    pub fn default_of(policy: u32, work_us: u64) -> Self {
        let learns = Learns {
            is_restored: false,
            refused_ns: None,
        };
        Self {
            window: defaults::WINDOW,
            slice: SlicePolicy::new(defaults::SLICE_MIN_NS, defaults::SLICE_MAX_NS)
                .expect("bounds in order"),
            overload: Some(
                OverloadPolicy::with_factor(defaults::OVERLOAD_FACTOR).expect("a factor above 0"),
            ),
            work_us,
            stalls: None,
            dies_ns: None,
            readers_ns: 0,
            learns: (policy == LEARNED).then_some(learns),
        }
    }

    /// The loader of a seed whose machine runs `policy`, with `slice_ns` as the fixed S; `None`:
    /// there is none, S is fixed, and nobody answers.
    pub fn draw(random: &mut ChaCha8Rng, policy: u32, slice_ns: u64) -> Option<Self> {
        let one_of = |random: &mut ChaCha8Rng, n| between(random, 1, n) == 1;
        if one_of(random, 3) {
            return None;
        }
        let window = [1, 10, 100, 100][between(random, 0, 3) as usize];
        let longest = [2 * MS, 10 * MS, 50 * MS, defaults::SLICE_MAX_NS];
        let slice = if one_of(random, 2) {
            SlicePolicy::fixed(slice_ns)
        } else {
            let longest = longest[between(random, 0, 3) as usize];
            SlicePolicy::new(defaults::SLICE_MIN_NS, longest)
        };
        let factor = [1.0, defaults::OVERLOAD_FACTOR, defaults::OVERLOAD_FACTOR];
        let factor = factor[between(random, 0, 2) as usize];
        let overload = OverloadPolicy::with_factor(factor).expect("factors above 0");
        let is_slow = one_of(random, 6);
        let work_us = between(random, 5, if is_slow { 20_000 } else { 100 });
        let stall = (between(random, 0, 200) * MS, between(random, 10, 500) * MS);
        let death = between(random, 1, 500) * MS;
        let learns = Learns {
            is_restored: one_of(random, 2),
            refused_ns: one_of(random, 6).then(|| between(random, 0, 500) * MS),
        };
        Some(Self {
            window: NonZeroUsize::new(window).expect("not 0"),
            slice: slice.expect("bounds in order"),
            overload: (!one_of(random, 8)).then_some(overload),
            work_us,
            stalls: one_of(random, 4).then_some(stall),
            dies_ns: one_of(random, 8).then_some(death),
            readers_ns: [0, 0, 5 * MS, 50 * MS][between(random, 0, 3) as usize],
            learns: (policy == LEARNED).then_some(learns),
        })
    }
}
