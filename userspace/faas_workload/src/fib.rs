//! The function body of the SFS paper: fib(N), and its duration.

/// Uncontended duration of fib(N) in milliseconds, by N.
///
/// Source: the list of durations in the artefact of SFS (SC'22), for its
/// Python implementation on its authors' machine.
pub const DURATIONS_MS: [(u32, u64); 17] = [
    (20, 13),
    (21, 14),
    (22, 15),
    (23, 18),
    (24, 23),
    (25, 30),
    (26, 42),
    (27, 60),
    (28, 90),
    (29, 140),
    (30, 220),
    (31, 346),
    (32, 555),
    (33, 886),
    (34, 1425),
    (35, 2344),
    (36, 3708),
];

/// Uncontended duration of fib(`n`) in milliseconds, if it is in the table.
pub fn duration_ms(n: u32) -> Option<u64> {
    let found = DURATIONS_MS.iter().find(|(known, _)| *known == n);
    found.map(|(_, ms)| *ms)
}

/// The N whose fib(N) takes closest to `ms` milliseconds (of two that are
/// equally close, the smaller).
pub fn nearest(ms: f64) -> u32 {
    let mut best = DURATIONS_MS[0];
    for candidate in DURATIONS_MS {
        if (candidate.1 as f64 - ms).abs() < (best.1 as f64 - ms).abs() {
            best = candidate;
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_found_by_n() {
        assert_eq!(duration_ms(20), Some(13));
        assert_eq!(duration_ms(36), Some(3708));
        assert_eq!(duration_ms(19), None);
    }

    #[test]
    fn nearest_takes_the_closest_and_of_two_the_smaller() {
        assert_eq!(nearest(0.0), 20);
        assert_eq!(nearest(59.0), 27);
        assert_eq!(nearest(75.0), 27); // 15 ms from both 60 and 90
        assert_eq!(nearest(1e9), 36);
    }
}
