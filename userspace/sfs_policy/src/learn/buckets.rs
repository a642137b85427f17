//! Buckets of CPU time: four to each doubling, from 65.536 us to 275 s.
//!
//! | bucket | CPU time in ns |
//! |---|---|
//! | 0 | below 2^16 |
//! | 1 + 4 o + q, for q in 0..4 | from (4 + q) x 2^(14 + o), up to the next one's start |
//! | 89 | 2^38 and more |
//!
//! A bucket is at most a quarter longer than its start. Its number follows from the position of
//! the highest bit and the two bits after it, which takes the kernel half a few instructions.

/// Number of buckets.
pub const BUCKETS: usize = 90;

/// Bucket 0 contains times below 2 to this power, in ns.
const SHORTEST: u32 = 16;

/// Buckets in each doubling, from the two bits after the highest one.
pub(super) const PARTS: u64 = 4;

/// The bucket of `ns` of CPU time.
pub fn bucket(ns: u64) -> usize {
    let Some(high) = ns.checked_ilog2().filter(|high| *high >= SHORTEST) else {
        return 0;
    };
    let part = (ns >> (high - 2)) % PARTS;
    let index = u64::from(high - SHORTEST) * PARTS + part + 1;
    (index as usize).min(BUCKETS - 1)
}

/// The start of `bucket`, in ns: the lowest CPU time in it. Beyond the last bucket the sequence
/// continues, up to 2^63.
pub fn start_ns(bucket: usize) -> u64 {
    let Some(index) = bucket.checked_sub(1) else {
        return 0;
    };
    let (octave, part) = (index as u64 / PARTS, index as u64 % PARTS);
    let shift = (u64::from(SHORTEST) - 2 + octave).min(61);
    (PARTS + part) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_where_buckets_begin() {
        assert_eq!((start_ns(0), start_ns(1)), (0, 65_536));
        assert_eq!(start_ns(2), 81_920);
        assert_eq!(start_ns(BUCKETS - 1), 1 << 38);
        for index in 1..BUCKETS {
            let start = start_ns(index);
            assert_eq!((bucket(start - 1), bucket(start)), (index - 1, index));
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn buckets_are_at_most_a_quarter_long() {
        for index in 1..BUCKETS {
            let (start, end) = (start_ns(index), start_ns(index + 1));
            assert!(end > start && (end - start) * 4 <= start, "{index}");
        }
    }
}
