//! Which invocations are short: three answers, for a split in the middle of a class decides
//! about a tenth of the long ones.
//!
//! Each split is one of the trace, and the same for all schedulers of a seed.

use faas_data::measure::shortest;
use faas_data::summary::slice::SliceLog;
use faas_data::trace::Invocation;

/// The share of invocations that are short if the split is at the gap, in per cent: at
/// least and at most. A gap between few of them says nothing about the bulk.
const BULK_PERCENT: (usize, usize) = (50, 95);

/// The splits of one trace. Each says of each invocation whether it is short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits {
    /// The shortest 83 % by service time.
    pub share: Vec<bool>,
    /// Up to the gap of the distribution; `None` if there is none.
    pub gap: Option<Vec<bool>>,
    /// Not demoted; `None` if no scheduler logs S.
    pub kept: Option<Vec<bool>>,
}

impl Splits {
    /// Of a trace; `slice` is what one scheduler of the seed logged.
    pub fn new(invocations: &[Invocation], slice: Option<&SliceLog>) -> Self {
        Self {
            share: shortest(invocations),
            gap: gap(invocations),
            kept: slice.map(|log| kept(invocations, log)),
        }
    }
}

/// Short are those up to the gap: of all neighbours in the sorted service times of which the
/// shorter one is at 50 to 95 % of the invocations, the two with the largest ratio (of equal
/// ones the first). `None` if all of these are equal.
fn gap(invocations: &[Invocation]) -> Option<Vec<bool>> {
    // What only blocks counts as the shortest possible.
    let service = |one: &Invocation| one.service_us().max(1);
    let mut sorted: Vec<u64> = invocations.iter().map(service).collect();
    sorted.sort_unstable();
    let at = |percent: usize| sorted.len() * percent;
    let (low, high) = BULK_PERCENT;
    let mut widest: Option<(f64, u64)> = None;
    for (index, two) in sorted.windows(2).enumerate() {
        let shorter = 100 * (index + 1);
        let ratio = two[1] as f64 / two[0] as f64;
        let is_bulk = at(low) <= shorter && shorter <= at(high);
        if is_bulk && ratio > widest.map_or(1.0, |(known, _)| known) {
            widest = Some((ratio, two[0]));
        }
    }
    let (_, limit) = widest?;
    Some(
        invocations
            .iter()
            .map(|one| service(one) <= limit)
            .collect(),
    )
}

/// Kept are those whose service time is at most S at their arrival.
fn kept(invocations: &[Invocation], log: &SliceLog) -> Vec<bool> {
    let is_kept = |one: &Invocation| {
        let arrival_ms = one.arrival_us as f64 / 1e3;
        let later = log.at_ms.partition_point(|at| *at <= arrival_ms);
        let s_ms = log.s_ms.get(later.saturating_sub(1));
        s_ms.is_some_and(|s_ms| one.service_us() as f64 / 1e3 <= *s_ms)
    };
    invocations.iter().map(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(service_us: &[u64]) -> Vec<Invocation> {
        let arrivals = (0..).map(|id: u64| id * 1000);
        let pairs = arrivals.zip(service_us);
        pairs
            .map(|(at, us)| Invocation::cpu(at, "f", *us))
            .collect()
    }

    fn short(flags: &[bool]) -> usize {
        flags.iter().filter(|short| **short).count()
    }

    #[test]
    fn the_gap_is_where_neighbours_differ_most_around_the_bulk() {
        // The widest of all is at 10 %, the next at 70 %.
        let times = [1, 100, 110, 120, 130, 140, 150, 600, 700, 900];
        let found = gap(&trace(&times)).unwrap();
        assert_eq!(short(&found), 7);
        // The order in the trace does not matter.
        let mut turned = times;
        turned.reverse();
        assert_eq!(gap(&trace(&turned)).unwrap()[..3], [false; 3]);
        // A single long one is an outlier, not the gap: 90 % is within the bulk, 96 % is not.
        let mut outlier: Vec<u64> = (0..96).map(|id| 100 + id).collect();
        outlier.extend([9000; 4]);
        assert!(short(&gap(&trace(&outlier)).unwrap()) < 96);
    }

    #[test]
    fn equal_times_have_no_gap() {
        assert_eq!(gap(&trace(&[5; 20])), None);
        assert_eq!(gap(&trace(&[5])), None);
        assert_eq!(gap(&[]), None);
        // Those on the short side of the bulk differ, but not within it.
        assert_eq!(gap(&trace(&[1, 9, 9, 9, 9, 9])), None);
    }

    #[test]
    fn demoted_is_what_needs_more_than_s_at_its_arrival() {
        let log = SliceLog {
            at_ms: vec![0.0, 2.0],
            s_ms: vec![0.5, 5.0],
            fair_only: vec![false, false],
        };
        // Arrivals at 0, 1, 2 and 3 ms.
        let invocations = trace(&[500, 501, 5000, 5001]);
        assert_eq!(kept(&invocations, &log), [true, false, true, false]);
        let splits = Splits::new(&invocations, Some(&log));
        assert_eq!(splits.kept.unwrap(), [true, false, true, false]);
        assert_eq!(Splits::new(&invocations, None).kept, None);
        assert_eq!(splits.share, [true; 4]);
    }
}
