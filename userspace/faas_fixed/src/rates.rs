//! How many iterations fill a time.

use faas_data::fixed::Kernel;
use faas_data::kind::Work;
use faas_data::trace::{Invocation, Phase};

/// What one kind of work takes alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// CPU time that its working set takes to make, in ns.
    pub setup_ns: u64,
    /// CPU time of an iteration, in ps; 0 if it was not measured.
    pub iteration_ps: u64,
}

/// What fixed work takes alone on a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// CPU time of a process that does nothing, in ns.
    pub start_ns: u64,
    /// The kinds of work, by number.
    pub kernels: [Rate; Kernel::COUNT],
}

impl Rates {
    /// Number of words of [`Rates::to_words`].
    pub const WORDS: usize = 1 + 2 * Kernel::COUNT;

    /// The rates for processes that have their working sets: they take no time
    /// to make, and none to start a process unless `forks`.
    pub fn warm(mut self, forks: bool) -> Self {
        if !forks {
            self.start_ns = 0;
        }
        for rate in &mut self.kernels {
            rate.setup_ns = 0;
        }
        self
    }

    /// All of it, as numbers.
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let mut words = [self.start_ns; Self::WORDS];
        for (pair, rate) in words[1..].chunks_exact_mut(2).zip(self.kernels) {
            pair.copy_from_slice(&[rate.setup_ns, rate.iteration_ps]);
        }
        words
    }

    /// The rates in numbers of [`Rates::to_words`].
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        let mut rates = Self {
            start_ns: words[0],
            ..Self::default()
        };
        for (rate, pair) in rates.kernels.iter_mut().zip(words[1..].chunks_exact(2)) {
            (rate.setup_ns, rate.iteration_ps) = (pair[0], pair[1]);
        }
        rates
    }

    /// CPU time that `one` takes alone, in us; `None` if it does no fixed work.
    /// Phases without a kind have `default`.
    pub fn alone_us(&self, one: &Invocation, default: Work) -> Option<u64> {
        let mut plan = Plan::default();
        let mut is_fixed = false;
        for phase in &one.phases {
            let Phase::Cpu { us, work } = phase else {
                continue;
            };
            match work.unwrap_or(default).fixed() {
                None => plan.counted(*us),
                Some(kernel) => {
                    is_fixed = true;
                    plan.iterations(self, kernel, *us);
                }
            }
        }
        is_fixed.then(|| plan.alone_us())
    }
}

/// The plan of one invocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan {
    begun: bool,
    made: [bool; Kernel::COUNT],
    alone_ns: u64,
}

impl Plan {
    /// The number of iterations of its next phase, which is to take `us` us.
    /// From it the start of the process and the making of the working set are
    /// subtracted, if they come with it. It is at least 1, so a phase may take
    /// longer than it should: [`Plan::alone_us`] says how long.
    pub fn iterations(&mut self, rates: &Rates, kernel: Kernel, us: u64) -> u64 {
        let rate = rates.kernels[kernel.number()];
        let mut before_ns = 0;
        if !std::mem::replace(&mut self.begun, true) {
            before_ns += rates.start_ns;
        }
        if !std::mem::replace(&mut self.made[kernel.number()], true) {
            before_ns += rate.setup_ns;
        }
        let left_ps = u128::from((us * 1000).saturating_sub(before_ns)) * 1000;
        let each_ps = u128::from(rate.iteration_ps.max(1));
        let count = (left_ps / each_ps).max(1) as u64;
        self.alone_ns += before_ns + (u128::from(count) * each_ps / 1000) as u64;
        count
    }

    /// Its next phase counts CPU time, for `us` us, and the start of the
    /// process with it.
    pub fn counted(&mut self, us: u64) {
        self.begun = true;
        self.alone_ns += us * 1000;
    }

    /// CPU time that all phases so far take alone, in us.
    pub fn alone_us(&self) -> u64 {
        self.alone_ns.div_ceil(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates() -> Rates {
        let mut rates = Rates {
            start_ns: 100_000,
            ..Rates::default()
        };
        for (number, rate) in rates.kernels.iter_mut().enumerate() {
            rate.setup_ns = 1_000 * number as u64;
            rate.iteration_ps = 2_000 + number as u64;
        }
        rates
    }

    fn fixed(us: u64, number: usize) -> Phase {
        let work = Some(Work::Fixed(Kernel::ALL[number]));
        Phase::Cpu { us, work }
    }

    fn call(phases: &[Phase]) -> Invocation {
        Invocation {
            phases: phases.to_vec(),
            ..Invocation::cpu(0, "f", 1)
        }
    }

    #[test]
    fn start_and_working_set_come_once() {
        let (rates, mut plan) = (rates(), Plan::default());
        // 1000 us - 100 us - 2 us, at 2.002 ns each; then no more overhead.
        assert_eq!(plan.iterations(&rates, Kernel::ALL[2], 1_000), 448_551);
        assert_eq!(plan.iterations(&rates, Kernel::ALL[2], 1_000), 499_500);
        assert_eq!(plan.iterations(&rates, Kernel::ALL[4], 1_000), 497_005);
        assert_eq!(plan.alone_us(), 3_000);
    }

    #[test]
    fn too_short_a_phase_takes_what_it_needs() {
        let short = call(&[fixed(50, 5)]);
        // 100 us + 5 us and an iteration, instead of 50 us.
        assert_eq!(rates().alone_us(&short, Work::Spin), Some(106));
        let warm = rates().warm(false);
        assert_eq!(warm.alone_us(&short, Work::Spin), Some(50));
        let forked = rates().warm(true);
        assert_eq!(forked.alone_us(&short, Work::Spin), Some(101));
    }

    #[test]
    fn counted_time_counts_and_blocked_time_does_not() {
        let mixed = call(&[Phase::io(70), Phase::cpu(300), fixed(500, 0)]);
        assert_eq!(rates().alone_us(&mixed, Work::Spin), Some(800));
        let plain = call(&[Phase::io(70), Phase::cpu(300)]);
        assert_eq!(rates().alone_us(&plain, Work::Spin), None);
        let by_default = Work::Fixed(Kernel::ALL[0]);
        assert_eq!(rates().alone_us(&plain, by_default), Some(300));
    }

    #[test]
    fn numbers_without_a_measurement_are_no_panic() {
        let none = Rates::default();
        let count = Plan::default().iterations(&none, Kernel::ALL[0], 3);
        assert_eq!(count, 3_000_000);
    }

    proptest! {
        #[test]
        fn words_are_the_rates(words in prop::array::uniform19(any::<u64>())) {
            prop_assert_eq!(Rates::from_words(words).to_words(), words);
        }

        #[test]
        fn long_enough_invocations_take_their_service_time(us in 1_000u64..100_000_000, number in 0usize..9) {
            let alone = rates().alone_us(&call(&[fixed(us, number)]), Work::Spin).unwrap();
            prop_assert!(alone == us || alone + 1 == us, "{} {}", alone, us);
        }
    }
}
