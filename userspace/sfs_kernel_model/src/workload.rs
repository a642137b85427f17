//! What runs on the machine: daemons, hogs, yielders, and functions that come and go.

use crate::social::{self, Social};
use rand_chacha::ChaCha8Rng;
use sfs_kernel_draws::group_load::GroupLoad;
pub use sfs_kernel_draws::numbers::{between, exponential};
use sfs_kernel_draws::numbers::{MS, US};
use sfs_kernel_draws::real_time::RealTime;
use sfs_kernel_draws::topology::{self, Place};

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
    /// Has to do with other tasks.
    Social(Social),
    /// A function that runs forever; forked after load.
    Endless,
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
    /// An invocation of a trace (`crate::replay`).
    Invocation {
        /// Its number in the trace.
        number: u32,
        /// Its process ends with this turn.
        is_last: bool,
    },
    /// The loader, which decides itself what it does (`sfs_model`).
    Loader,
}

/// What a task does when it has had its CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It leaves the CPU, to sleep or to end.
    Stops,
    /// It gives up the CPU, and remains runnable.
    Yields,
    /// It goes on with the next part of its turn.
    GoesOn,
    /// The loader has had the CPU time for a step of its work.
    Serves,
}

impl Behaviour {
    /// CPU time of the next turn, ns.
    pub fn next_turn(self, random: &mut ChaCha8Rng) -> u64 {
        match self {
            Self::Daemon { runs_us, .. } => exponential(random, runs_us * US),
            Self::Social(social) => social.first(random),
            Self::Hog | Self::Endless => FOREVER,
            Self::Yielder(us) => us * US,
            Self::Function { runs_us, .. } => (runs_us * US).max(US),
            Self::Loader | Self::Invocation { .. } => US,
        }
    }

    /// What follows a turn.
    pub fn then(self) -> Then {
        match self {
            Self::Yielder(_) => Then::Yields,
            Self::Loader => Then::Serves,
            _ => Then::Stops,
        }
    }

    /// How a resident begins: whether it is forked after load, and whether it wakes up by itself.
    pub fn begins(self) -> (bool, bool) {
        match self {
            Self::Social(social) => social.begins(),
            Self::Endless => (true, true),
            _ => (false, true),
        }
    }

    /// Returns true if the task ends with this turn.
    pub fn ends(self) -> bool {
        let is_last = |behaviour| matches!(behaviour, Self::Invocation { is_last: true, .. });
        matches!(self, Self::Function { turns: 0 | 1, .. }) || is_last(self)
    }

    /// The turn is over: the sleep that follows, in ns; `None`: the task has ended.
    pub fn sleep(&mut self, random: &mut ChaCha8Rng) -> Option<u64> {
        match self {
            Self::Daemon { sleeps_us, .. } => Some(exponential(random, *sleeps_us * US)),
            Self::Function { turns: 0 | 1, .. } | Self::Invocation { .. } => None,
            Self::Function { turns, .. } => {
                *turns -= 1;
                Some(exponential(random, MS))
            }
            Self::Social(social) => Some(social.sleep(random)),
            Self::Hog | Self::Endless | Self::Yielder(_) | Self::Loader => Some(MS),
        }
    }
}

/// What a seed draws.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Number of CPUs.
    pub cpus: usize,
    /// The policy: 0 sfs, 1 learned, 2 fair, as the kernel half numbers them.
    pub policy: u32,
    /// S, ns.
    pub slice_ns: u64,
    /// A tick, ns.
    pub tick_ns: u64,
    /// Tasks there from the beginning; with `true` a kernel thread.
    pub residents: Vec<(Behaviour, bool)>,
    /// Mean time between arrivals of functions, ns.
    pub arrivals_ns: u64,
    /// For so long functions arrive twice as often, and for as long none does, ns; 0: all the time.
    pub burst_ns: u64,
    /// Mean CPU time of a function, ns.
    pub function_ns: u64,
    /// One task of so many may run on one CPU only.
    pub pinned_of: u64,
    /// Mean time between changes of a nice value or an affinity, ns; 0: none.
    pub changes_ns: u64,
    /// Real-time tasks; `None`: there are none.
    pub real_time: Option<RealTime>,
    /// What tasks do.
    pub habits: Habits,
    /// What its CPUs share.
    pub topology: Vec<Place>,
    /// How the kernel half finds invocations.
    pub boundaries: Boundaries,
    /// Control groups.
    pub groups: GroupLoad,
}

/// What tasks of a machine do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// One turn of so many has a section with migration disabled; 0: none.
    pub stays_of: u64,
    /// Processes execute programs and start threads.
    pub has_families: bool,
}

/// Options about boundaries, as the loader sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundaries {
    /// Bits of `enum sfs_boundary`.
    pub kinds: u32,
    /// `enum sfs_unit`.
    pub unit: u32,
    /// The sleep of SFS_BOUNDARY_IDLE, ns.
    pub idle_ns: u64,
    /// The port of SFS_BOUNDARY_RECEIVE; 0: any.
    pub port: u16,
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
        // One seed in eight has functions that are long beside S.
        let longest = [20_000, 400_000][(between(random, 0, 7) == 0) as usize];
        let function_ns = between(random, 200, longest) * US;
        // Idle CPUs are needed to see what does not use them.
        let most = if between(random, 0, 2) == 0 { 40 } else { 200 };
        let load = between(random, most / 10, most);
        let mut residents: Vec<_> = (0..between(random, 0, cpus as u64 * most / 70))
            .map(|_| (resident(random), between(random, 0, 4) == 0))
            .collect();
        // They know each other by their distance.
        let social = social::draw(random, cpus as u64);
        residents.extend(social.into_iter().map(|behaviour| (behaviour, false)));
        let mut workload = Self {
            cpus,
            policy: between(random, 0, 2) as u32,
            slice_ns: between(random, 1, 200) * MS,
            tick_ns: [1, 4, 10][between(random, 0, 2) as usize] * MS,
            residents,
            arrivals_ns: (function_ns * 100 / load / cpus as u64).max(US),
            burst_ns: [0, 0, 20 * MS, 100 * MS][between(random, 0, 3) as usize],
            function_ns,
            pinned_of: between(random, 1, 20),
            changes_ns: [0, MS / 10, MS, 20 * MS][between(random, 0, 3) as usize],
            habits: Habits {
                stays_of: [0, 0, 3, 50][between(random, 0, 3) as usize],
                has_families: between(random, 0, 1) == 0,
            },
            topology: topology::draw(random, cpus),
            boundaries: boundaries(random),
            real_time: (between(random, 0, 2) == 0).then(|| RealTime::draw(random, cpus as u64)),
            groups: GroupLoad::draw(random),
        };
        if workload.groups.unit_is_cgroup {
            workload.boundaries.unit = 1;
        }
        if workload.groups.is_steady {
            crate::steady::make_room(&mut workload);
        }
        workload
    }

    /// The time from an arrival, `now` ns after load, to the next one, ns.
    pub fn next_arrival(&self, random: &mut ChaCha8Rng, now: u64) -> u64 {
        if self.burst_ns == 0 {
            return exponential(random, self.arrivals_ns);
        }
        let delay = exponential(random, (self.arrivals_ns / 2).max(US));
        let (next, period) = (now + delay, 2 * self.burst_ns);
        if next % period < self.burst_ns {
            return delay;
        }
        next.next_multiple_of(period) - now
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

/// Half of the machines have the loader's default.
fn boundaries(random: &mut ChaCha8Rng) -> Boundaries {
    let is_default = between(random, 0, 1) == 0;
    let kinds = between(random, 1, 63) as u32;
    Boundaries {
        kinds: if is_default { 1 | 1 << 2 } else { kinds },
        unit: if between(random, 0, 3) == 0 { 2 } else { 0 },
        idle_ns: between(random, 1, 30) * MS,
        port: [0, 8080][between(random, 0, 1) as usize],
    }
}

fn resident(random: &mut ChaCha8Rng) -> Behaviour {
    match between(random, 0, 5) {
        0 if between(random, 0, 1) == 0 => Behaviour::Endless,
        0 => Behaviour::Hog,
        1 => Behaviour::Yielder(between(random, 1, 500)),
        _ => Behaviour::Daemon {
            runs_us: between(random, 5, 3_000),
            sleeps_us: between(random, 100, 50_000),
        },
    }
}
