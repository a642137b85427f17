//! Computing for a given time without checking the clock all the time.

/// Maximum time between two checks of the clock in nanoseconds. A check takes
/// the run queue's lock and makes the kernel update its accounts; real
/// functions do not do that often.
pub const LONGEST_NS: u64 = 500_000;

/// Share of the rest for one stretch: a quarter.
pub const SHARE: u64 = 4;

/// Makes `rounds` compute until `clock` shows `target_ns`, as [`try_until`].
pub fn until(
    target_ns: u64,
    shortest: u64,
    clock: impl FnMut() -> u64,
    mut rounds: impl FnMut(u64),
) {
    let infallible = |count| {
        rounds(count);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(()) = try_until(target_ns, shortest, clock, infallible);
}

/// Makes `rounds` do a number of rounds, at least `shortest` at a time, until
/// `clock` shows `target_ns`.
///
/// It checks the clock after a quarter of the rest, at the pace of the previous
/// stretch, and so approaches the target in ever smaller steps. The overshoot
/// is one check and one shortest stretch, unless a round becomes four times
/// slower within a stretch.
///
/// # Errors
/// The first error of `rounds`.
pub fn try_until<E>(
    target_ns: u64,
    shortest: u64,
    mut clock: impl FnMut() -> u64,
    mut rounds: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut before = clock();
    let mut count = shortest;
    while before < target_ns {
        rounds(count)?;
        let now = clock();
        // The cost of the check counts as computing. This overestimates the
        // time per round in short stretches, which makes the next one shorter,
        // not longer.
        let pace_ns = (now - before).max(1);
        let stretch_ns = (target_ns.saturating_sub(now) / SHARE).min(LONGEST_NS);
        let most = count.saturating_mul(4);
        count = (stretch_ns.saturating_mul(count) / pace_ns).clamp(shortest, most);
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

    /// Runs to `target_ns` with rounds of `round_ns` and checks of `look_ns`.
    fn trial(target_ns: u64, shortest: u64, round_ns: u64, look_ns: u64) -> Trial {
        let (now, looks, longest) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let clock = || {
            looks.set(looks.get() + 1);
            now.set(now.get() + look_ns);
            now.get()
        };
        until(target_ns, shortest, clock, |count| {
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
        let none = try_until(5, 1, || 5, |_| Err("begun"));
        assert_eq!(none, Ok(()));
        assert_eq!(try_until(6, 1, || 5, |_| Err("begun")), Err("begun"));
    }
}
