//! What runs on the machine: daemons, hogs, yielders, and functions that come and go.

use crate::group_load::GroupLoad;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// ns in a microsecond.
const US: u64 = 1_000;
/// ns in a millisecond.
const MS: u64 = 1_000_000;
/// A hog runs for so long without a break: forever.
const FOREVER: u64 = u64::MAX / 4;

/// How a task behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Runs and sleeps in turns, for these times in us on average.
    Daemon {
        /// CPU time of a turn.
        runs_us: u64,
        /// The sleep behind it.
        sleeps_us: u64,
    },
    /// Runs forever.
    Hog,
    /// Runs for so many us, and gives up its CPU, over and over.
    Yielder(u64),
    /// An invocation: this many more turns of CPU time, with short sleeps between them.
    Function {
        /// Turns left, this one included.
        turns: u64,
        /// CPU time of each, us.
        runs_us: u64,
    },
}

/// What a task does when it has had its CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It leaves the CPU, to sleep or to end.
    Stops,
    /// It gives up the CPU, and remains runnable.
    Yields,
}

impl Behaviour {
    /// CPU time of the next turn, ns.
    pub fn next_turn(self, random: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Daemon { runs_us, .. } => exponential(random, runs_us * US),
            Self::Hog => FOREVER,
            Self::Yielder(us) => us * US,
            Self::Function { runs_us, .. } => (runs_us * US).max(US),
        }
    }

    /// What follows a turn.
    pub fn then(self) -> Then {
        match self {
            Self::Yielder(_) => Then::Yields,
            _ => Then::Stops,
        }
    }

    /// Returns true if the task ends with this turn.
    pub fn ends(self) -> bool {
        matches!(self, Self::Function { turns: 0 | 1, .. })
    }

    /// The turn is over: the sleep that follows, in ns; `None`: the task has ended.
    pub fn sleep(&mut self, random: &mut ChaCha8Rng) -> Option<u64> {
        match self {
            Self::Daemon { sleeps_us, .. } => Some(exponential(random, *sleeps_us * US)),
            Self::Function { turns: 0 | 1, .. } => None,
            Self::Function { turns, .. } => {
                *turns -= 1;
                Some(exponential(random, MS))
            }
            Self::Hog | Self::Yielder(_) => Some(MS),
        }
    }
}

/// A time from an exponential distribution, at least 1 us.
pub fn exponential(random: &mut ChaCha8Rng, mean_ns: u64) -> u64 {
    let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    ((-(1.0 - uniform).ln() * mean_ns as f64) as u64).max(US)
}

/// A number from `from` to `to`.
pub fn between(random: &mut ChaCha8Rng, from: u64, to: u64) -> u64 {
    from + random.next_u64() % (to - from + 1)
}

/// What a seed draws.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Number of CPUs.
    pub cpus: usize,
    /// The policy: 0 sfs, 1 fair, 2 learned, as the kernel half numbers them.
    pub policy: u32,
    /// S, ns.
    pub slice_ns: u64,
    /// A tick, ns.
    pub tick_ns: u64,
    /// Tasks there from the beginning; with `true` a kernel thread.
    pub residents: Vec<(Behaviour, bool)>,
    /// Mean time between arrivals of functions, ns.
    pub arrivals_ns: u64,
    /// Mean CPU time of a function, ns.
    pub function_ns: u64,
    /// One task of so many may run on one CPU only.
    pub pinned_of: u64,
    /// Mean time between changes of a nice value or an affinity, ns; 0: none.
    pub changes_ns: u64,
    /// Control groups.
    pub groups: GroupLoad,
}

impl Workload {
    /// The workload of a seed.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let cpus = match between(random, 0, 3) {
            0 => 1,
            1 => between(random, 2, 4),
            2 => between(random, 5, 16),
            _ => between(random, 17, 96),
        } as usize;
        let function_ns = between(random, 200, 20_000) * US;
        let load = between(random, 20, 200);
        let residents = (0..between(random, 0, 3 * cpus as u64))
            .map(|_| (resident(random), between(random, 0, 4) == 0))
            .collect();
        let mut workload = Self {
            cpus,
            policy: between(random, 0, 2) as u32,
            slice_ns: between(random, 1, 200) * MS,
            tick_ns: [1, 4, 10][between(random, 0, 2) as usize] * MS,
            residents,
            arrivals_ns: (function_ns * 100 / load / cpus as u64).max(US),
            function_ns,
            pinned_of: between(random, 1, 20),
            changes_ns: [0, MS / 10, MS, 20 * MS][between(random, 0, 3) as usize],
            groups: GroupLoad::draw(random),
        };
        if workload.groups.is_steady {
            crate::steady::make_room(&mut workload);
        }
        workload
    }

    /// A function that arrives.
    pub fn function(&self, random: &mut ChaCha8Rng) -> Behaviour {
        let turns = between(random, 1, 3);
        let cpu_time = exponential(random, self.function_ns);
        Behaviour::Function {
            turns,
            runs_us: (cpu_time / US / turns).max(1),
        }
    }
}

fn resident(random: &mut ChaCha8Rng) -> Behaviour {
    match between(random, 0, 5) {
        0 => Behaviour::Hog,
        1 => Behaviour::Yielder(between(random, 1, 500)),
        _ => Behaviour::Daemon {
            runs_us: between(random, 5, 3_000),
            sleeps_us: between(random, 100, 50_000),
        },
    }
}
