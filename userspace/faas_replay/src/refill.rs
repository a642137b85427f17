//! Cold caches as a parameter: the demand of an invocation grows after each switch.
//!
//! An emulated CPU has no cache, so a thread that returns to its CPU goes on at full speed.
//! This model adds what a real one would need to fill its caches again, as CPU time: so much
//! for each switch, and other amounts if the thread is then on another CPU, at another
//! last-level cache, or on another NUMA node. It assumes that
//!
//! - each switch costs the same, however long the thread was away and whatever ran meanwhile:
//!   a switch after sleeping counts even if its CPU idled;
//! - the amounts add up, also those of two switches in quick succession. So an invocation
//!   whose turns are shorter than its refill never ends, unless the load does;
//! - the start of an invocation costs nothing: it is the same under every scheduler.
//!
//! The number of switches is the kernel's (`RUSAGE_THREAD`). A switch at which the scheduler
//! chooses the same thread again is none. Where several switches are seen at once, all but the
//! last count as switches on the same CPU.

use crate::topology::{Place, Topology};
use nix::sched::sched_getcpu;
use nix::sys::resource::{getrusage, UsageWho};
use std::str::FromStr;

/// CPU time between two looks at the counters, in nanoseconds.
pub const LOOK_NS: u64 = 50_000;

/// The largest amount for a switch, in microseconds.
pub const MOST_US: u32 = 10_000;

/// Kinds of switches: on the same CPU, to another CPU, to one at another last-level cache, to
/// one on another NUMA node.
pub const KINDS: usize = 4;

/// CPU time for a switch of each kind, in microseconds, at most [`MOST_US`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts(pub [u32; KINDS]);

impl FromStr for Amounts {
    type Err = String;

    /// One to four numbers with commas between them; those that are missing are as the last.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "want 1 to {KINDS} whole numbers of us from 0 to {MOST_US}, as 50 or 20,50,100,200"
            )
        };
        let mut amounts = [0; KINDS];
        let words: Vec<&str> = text.split(',').collect();
        if words.len() > KINDS {
            return Err(wrong());
        }
        let mut last = 0;
        for (place, amount) in amounts.iter_mut().enumerate() {
            if let Some(word) = words.get(place) {
                let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
                let number = word.parse().ok().filter(|us| *us <= MOST_US && is_plain);
                last = number.ok_or_else(wrong)?;
            }
            *amount = last;
        }
        Ok(Self(amounts))
    }
}

impl Amounts {
    /// Whether it matters where a thread runs.
    pub fn depend_on_place(&self) -> bool {
        self.0[1..].iter().any(|us| *us != self.0[1])
    }

    /// CPU time for these switches, in nanoseconds.
    pub fn ns(&self, counts: Counts) -> u64 {
        let each = self.0.iter().zip(counts.0);
        each.map(|(us, count)| u64::from(*us) * 1000 * count).sum()
    }

    /// The amounts as a word of 64 bits, which is not 0.
    pub fn to_word(self) -> u64 {
        let bits = self.0.iter().rev();
        let word = bits.fold(0, |word, us| word << 15 | u64::from(*us));
        word | 1 << 63
    }

    /// The amounts in a word of [`Amounts::to_word`]; `None` for 0.
    pub fn from_word(word: u64) -> Option<Self> {
        let bits = |kind: usize| (word >> (15 * kind)) as u32 & 0x7fff;
        (word != 0).then(|| Self(std::array::from_fn(bits)))
    }
}

/// Numbers of switches of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts(pub [u64; KINDS]);

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// What the kernel says about the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Switches from it to another thread so far.
    pub switches: u64,
    /// The CPU that it is on.
    pub cpu: usize,
}

impl Seen {
    /// The calling thread now. Both calls succeed on every Linux; without them nothing grows.
    pub fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_THREAD);
        let switches = usage.map_or(0, |usage| {
            let both = usage.voluntary_context_switches() + usage.involuntary_context_switches();
            both as u64
        });
        Self {
            switches,
            cpu: sched_getcpu().unwrap_or(0),
        }
    }
}

/// The growth of one invocation.
#[derive(Debug, Clone)]
pub struct Refill {
    amounts: Amounts,
    topology: Topology,
    last: Seen,
    counts: Counts,
}

impl Refill {
    /// By these amounts on such a machine. [`Refill::begin`] begins an invocation.
    pub fn new(amounts: Amounts, topology: Topology) -> Self {
        Self {
            amounts,
            topology,
            last: Seen {
                switches: 0,
                cpu: 0,
            },
            counts: Counts::default(),
        }
    }

    /// Begins an invocation.
    pub fn begin(&mut self, seen: Seen) {
        self.last = seen;
        self.counts = Counts::default();
    }

    /// Forgets the switches up to now, for which nothing is added.
    pub fn pass(&mut self, seen: Seen) {
        self.last = seen;
    }

    /// Counts the switches since the last look; returns by how many nanoseconds the demand
    /// grows for them.
    pub fn look(&mut self, seen: Seen) -> u64 {
        let switches = seen.switches.saturating_sub(self.last.switches);
        if switches == 0 {
            return 0;
        }
        let mut new = Counts::default();
        new.0[0] = switches - 1;
        new.0[self.kind(seen.cpu)] += 1;
        self.last = seen;
        self.counts.add(new);
        self.amounts.ns(new)
    }

    /// The switches of the invocation so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The kind of a switch to `cpu`.
    fn kind(&self, cpu: usize) -> usize {
        if cpu == self.last.cpu {
            return 0;
        }
        let (from, to): (Place, Place) =
            (self.topology.place(self.last.cpu), self.topology.place(cpu));
        match () {
            () if from.node != to.node => 3,
            () if from.cache != to.cache => 2,
            () => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::pace::{try_until, Check};
    use proptest::prelude::*;
    use std::cell::Cell;

    fn topology() -> Topology {
        let place = |cache, node| Place { cache, node };
        Topology::of(vec![place(0, 0), place(0, 0), place(2, 0), place(3, 1)])
    }

    fn refill(amounts: [u32; KINDS]) -> Refill {
        let mut refill = Refill::new(Amounts(amounts), topology());
        refill.begin(Seen {
            switches: 7,
            cpu: 0,
        });
        refill
    }

    #[test]
    fn amounts_repeat_the_last_and_are_bounded() {
        let read = |text: &str| text.parse::<Amounts>().map(|amounts| amounts.0);
        assert_eq!(read("50"), Ok([50; 4]));
        assert_eq!(read("0,5"), Ok([0, 5, 5, 5]));
        assert_eq!(read("20,50,100,10000"), Ok([20, 50, 100, 10_000]));
        for bad in [
            "",
            "x",
            "-1",
            "+1",
            "1.5",
            "10001",
            "1,",
            ",1",
            "1,2,3,4,5",
            "1 2",
        ] {
            let said = read(bad).unwrap_err();
            assert!(
                said.starts_with("want 1 to 4 whole numbers"),
                "{bad}: {said}"
            );
        }
        assert!(Amounts([0, 5, 5, 6]).depend_on_place());
        assert!(!Amounts([0, 5, 5, 5]).depend_on_place());
    }

    #[test]
    fn each_kind_of_switch_has_its_amount() {
        let mut refill = refill([1, 20, 300, 4000]);
        let mut look = |switches, cpu| refill.look(Seen { switches, cpu }) / 1000;
        assert_eq!(look(7, 0), 0);
        assert_eq!(look(8, 0), 1);
        assert_eq!(look(9, 1), 20);
        assert_eq!(look(12, 2), 302);
        assert_eq!(look(13, 3), 4000);
        assert_eq!(look(14, 99), 4000);
        assert_eq!(refill.counts(), Counts([3, 1, 1, 2]));
        refill.pass(Seen {
            switches: 20,
            cpu: 0,
        });
        assert_eq!(
            refill.look(Seen {
                switches: 20,
                cpu: 0
            }),
            0
        );
    }

    proptest! {
        #[test]
        fn amounts_survive_as_a_word(us in proptest::array::uniform4(0u32..=MOST_US)) {
            let amounts = Amounts(us);
            prop_assert_eq!(Amounts::from_word(amounts.to_word()), Some(amounts));
            prop_assert_eq!(Amounts::from_word(0), None);
        }

        /// Work on a simulated clock, with a switch each time that it passes another `every_ns`
        /// of CPU time, up to `most` of them.
        #[test]
        fn demand_grows_by_exactly_r_for_each_switch(
            us in 0u32..=500,
            every_ns in 700_000u64..5_000_000,
            most in 0u64..40,
            demand_ns in 100_000u64..20_000_000,
        ) {
            let now = Cell::new(0u64);
            let mut refill = refill([us; 4]);
            let mut target_ns = demand_ns;
            let check = || {
                now.set(now.get() + 300);
                let switches = 7 + (now.get() / every_ns).min(most);
                target_ns += refill.look(Seen { switches, cpu: 1 });
                Check { now_ns: now.get(), target_ns, longest_ns: LOOK_NS }
            };
            let done: Result<(), ()> = try_until(1, check, |count| {
                now.set(now.get() + count * 500);
                Ok(())
            });
            prop_assert_eq!(done, Ok(()));
            let switches: u64 = refill.counts().0.iter().sum();
            prop_assert_eq!(switches, (now.get() / every_ns).min(most));
            prop_assert_eq!(target_ns, demand_ns + switches * u64::from(us) * 1000);
            prop_assert!(now.get() >= target_ns && now.get() - target_ns <= 500 + 600);
        }
    }

    #[test]
    fn this_thread_is_on_a_cpu_and_sleeping_is_a_switch() {
        let before = Seen::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(Seen::now().switches > before.switches);
    }
}
