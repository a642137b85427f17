//! Computing for a given time without checking the clock all the time.

/// Maximum time between two checks of the clock in nanoseconds. A check takes
/// the run queue's lock and makes the kernel update its accounts; real
/// functions do not do that often.
pub const LONGEST_NS: u64 = 500_000;

/// Share of the rest for one stretch: a quarter.
pub const SHARE: u64 = 4;

/// What a check of the clock finds, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// What the clock shows.
    pub now_ns: u64,
    /// Until when to compute. It may grow from check to check.
    pub target_ns: u64,
    /// Maximum time to the next check.
    pub longest_ns: u64,
}

impl Check {
    /// How long to compute until the next check: a share of the rest.
    pub fn stretch_ns(self) -> u64 {
        (self.left_ns() / SHARE).min(self.longest_ns)
    }

    /// How long to compute in all.
    pub fn left_ns(self) -> u64 {
        self.target_ns.saturating_sub(self.now_ns)
    }
}

/// Makes `rounds` compute until the target that `check` tells, as [`try_until`].
pub fn until(shortest: u64, check: impl FnMut() -> Check, mut rounds: impl FnMut(u64)) {
    let infallible = |count| {
        rounds(count);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(()) = try_until(shortest, check, infallible);
}

/// Makes `rounds` do a number of rounds, at least `shortest` at a time, until
/// `check` finds that the clock has reached the target.
///
/// It checks the clock after a quarter of the rest, at the pace of the previous
/// stretch, and so approaches the target in ever smaller steps. The overshoot
/// is one check and one shortest stretch, unless a round becomes four times
/// slower within a stretch.
///
/// # Errors
/// The first error of `rounds`.
pub fn try_until<E>(
    shortest: u64,
    mut check: impl FnMut() -> Check,
    mut rounds: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut before = check();
    let mut count = shortest;
    while before.left_ns() > 0 {
        rounds(count)?;
        let now = check();
        // The cost of the check counts as computing. This overestimates the
        // time per round in short stretches, which makes the next one shorter,
        // not longer.
        let pace_ns = (now.now_ns - before.now_ns).max(1);
        let most = count.saturating_mul(4);
        count = (now.stretch_ns().saturating_mul(count) / pace_ns).clamp(shortest, most);
        before = now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// The result on a simulated clock.
    struct Trial {
        overshoot_ns: u64,
        looks: u64,
        longest_ns: u64,
    }

    fn at(now_ns: u64, target_ns: u64) -> Check {
        Check {
            now_ns,
            target_ns,
            longest_ns: LONGEST_NS,
        }
    }

    /// Runs to `target_ns` with rounds of `round_ns` and checks of `look_ns`.
    fn trial(target_ns: u64, shortest: u64, round_ns: u64, look_ns: u64) -> Trial {
        let (now, looks, longest) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let check = || {
            looks.set(looks.get() + 1);
            now.set(now.get() + look_ns);
            at(now.get(), target_ns)
        };
        until(shortest, check, |count| {
            longest.set(longest.get().max(count * round_ns));
            now.set(now.get() + count * round_ns);
        });
        Trial {
            overshoot_ns: now.get() - target_ns,
            looks: looks.get(),
            longest_ns: longest.get(),
        }
    }

    proptest! {
        #[test]
        fn the_overshoot_is_one_shortest_stretch_and_one_check(
            target_ns in 1u64..10_000_000_000,
            shortest in 1u64..300,
            round_ns in 1u64..50_000,
            look_ns in 1u64..20_000,
        ) {
            let found = trial(target_ns, shortest, round_ns, look_ns);
            prop_assert!(found.overshoot_ns <= shortest * round_ns + 2 * look_ns);
            let longest = LONGEST_NS.max(shortest * round_ns);
            prop_assert!(found.longest_ns <= longest, "{}", found.longest_ns);
        }
    }

    #[test]
    fn checks_are_rare() {
        // 1 s in stretches of 0.5 ms, and some more checks at both ends.
        assert!(trial(1_000_000_000, 200, 3, 300).looks < 2_050);
    }

    #[test]
    fn past_targets_do_nothing_and_errors_end_it() {
        let none = try_until(1, || at(5, 5), |_| Err("begun"));
        assert_eq!(none, Ok(()));
        let failed = try_until(1, || at(5, 6), |_| Err("begun"));
        assert_eq!(failed, Err("begun"));
    }
}
