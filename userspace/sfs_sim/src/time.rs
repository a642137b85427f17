//! Simulated time in whole ticks, so that no result depends on rounding.
//!
//! A tick is 2^-10 ns. All times of a trace are whole microseconds, hence whole
//! ticks, and every policy that gives an invocation a whole CPU or none
//! computes exactly. Where n invocations share c CPUs, completions fall between
//! ticks and are rounded up to the next: a millionth of a microsecond each.

/// A point in time or a duration, in ticks.
pub type Time = u64;

/// Ticks in a nanosecond.
pub const PER_NS: Time = 1 << 10;

/// Ticks in a microsecond.
pub const PER_US: Time = 1000 * PER_NS;

/// Service attained under sharing, in ticks / 2^[`FRACTION`], so that a million
/// roundings lose less than a tick.
pub type Attained = u128;

/// Bits of [`Attained`] below a tick.
pub const FRACTION: u32 = 32;

/// A whole number of ticks as [`Attained`].
pub fn attained(ticks: Time) -> Attained {
    Attained::from(ticks) << FRACTION
}

/// Progress in `ticks` at a rate of `numerator` / `denominator` (not 0),
/// rounded down.
pub fn progress(ticks: Time, numerator: u32, denominator: u32) -> Attained {
    if numerator == denominator {
        return attained(ticks);
    }
    attained(ticks) * Attained::from(numerator) / Attained::from(denominator)
}

/// Ticks needed for `distance` at a rate of `numerator` / `denominator`
/// (neither 0), rounded up.
pub fn duration(distance: Attained, numerator: u32, denominator: u32) -> Time {
    let ticks = if numerator == denominator {
        distance.div_ceil(1 << FRACTION)
    } else {
        (distance * Attained::from(denominator)).div_ceil(Attained::from(numerator) << FRACTION)
    };
    Time::try_from(ticks).unwrap_or(Time::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::input::MAX_US;

    #[test]
    fn progress_and_duration_are_inverse() {
        assert_eq!(progress(10, 1, 1), attained(10));
        assert_eq!(progress(10, 1, 2), attained(5));
        assert_eq!(duration(attained(5), 1, 2), 10);
        assert_eq!(duration(attained(5) + 1, 1, 1), 6);
        for ticks in [1, 7, 1_000_003] {
            assert_eq!(duration(progress(ticks, 12, 35), 12, 35), ticks);
        }
    }

    #[test]
    fn the_longest_simulation_does_not_overflow() {
        let longest = MAX_US * PER_US;
        let far = progress(longest, u32::MAX - 1, u32::MAX);
        assert!(duration(far, u32::MAX - 1, u32::MAX) <= longest);
    }
}
