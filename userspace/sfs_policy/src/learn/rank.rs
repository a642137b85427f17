//! From a distribution of service times to a rank for each attained service.
//!
//! The Gittins index of an invocation with attained service a is the best ratio of the gain of
//! completing it within the next d to the CPU time that this takes. With a gain of w(X) for a
//! completion after X:
//!
//! G(a) = sup over d > 0 of E[w(X); a < X <= a + d] / E[min(X - a, d); X > a]
//!
//! (Gittins 1979; Aalto, Ayesta & Righter 2009, eq. 4, has w = 1.) Serving the highest G first
//! minimizes the mean turnaround for w(x) = 1 and the mean slowdown for w(x) = 1 / x, because a
//! waiting invocation costs w for each unit of time; see [`Aim`].
//!
//! For w = 1, 1 / G is a time, the cost of a completion: about the remaining work, unless the
//! distribution offers an early completion. Otherwise it is that time multiplied by a power of
//! the service time, and its root is taken. The rank is the logarithm of that time, so lower is
//! earlier, and ranks of different functions are comparable.
//!
//! With W(x) = E[w(X); X <= x] and H(x) the integral of P(X > t) from 0 to x, G(a) is the
//! steepest slope from (H(a), W(a)) to a later point of the curve (H, W). The candidates among
//! the ends of the buckets are the upper convex hull of the points after a, which is found in
//! one pass from the longest down.

use super::buckets::{start_ns, BUCKETS, PARTS};

/// The ranks of an invocation by attained service: one for each bucket, valid at its start.
/// Lower is earlier; all are below [`BUCKETS`].
pub type Ranks = [u8; BUCKETS];

/// A distribution of service times: the probability of each bucket. The sum need not be 1, but
/// all values must be finite and not negative.
pub type Mass = [f64; BUCKETS];

/// The quantity to minimize: the weight w(x) of a completion after x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Mean turnaround: w = 1.
    Turnaround,
    /// Between the two: w = 1 / the root of x.
    Both,
    /// Mean slowdown: w = 1 / x.
    Slowdown,
}

impl Aim {
    /// The ratio of the weights of two successive buckets: 2 to the power of 0, -1/8 and -1/4,
    /// as four buckets are a doubling.
    fn fading(self) -> f64 {
        match self {
            Self::Turnaround => 1.0,
            Self::Both => 0.917_004_043_204_671_2,
            Self::Slowdown => 0.840_896_415_253_714_5,
        }
    }

    /// The rank for a cost of `power`, a time in ns to the power of 1, 3/2 or 2 (in units in
    /// which the shortest bucket has the weight 1).
    fn rank(self, power: f64) -> u8 {
        let Some(quarters) = quarters(power) else {
            return 0;
        };
        let more = match self {
            Self::Turnaround => quarters,
            Self::Both => quarters * 2 / 3,
            Self::Slowdown => quarters / 2,
        };
        (more + 1).min(BUCKETS as u64 - 1) as u8
    }
}

/// The logarithm of `ns` relative to the end of the first bucket, in quarters of a doubling
/// like buckets: the exponent of the number and the first two bits of its fraction. None for
/// times in the first bucket.
fn quarters(ns: f64) -> Option<u64> {
    const FIRST: f64 = 65_536.0;
    (ns >= FIRST).then(|| (ns.to_bits() >> 50) - (FIRST.to_bits() >> 50))
}

/// A corner of the curve: CPU time (H) and gain (W).
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    area: f64,
    gain: f64,
}

impl Point {
    fn slope_to(self, other: Self) -> f64 {
        (other.gain - self.gain) / (other.area - self.area)
    }
}

/// The ranks for a distribution. Beyond the end of the distribution, an invocation is assumed
/// to need as much again as it has had, as with the heaviest of tails. An empty distribution
/// thus yields one level for each bucket.
pub fn ranks(mass: &Mass, aim: Aim) -> Ranks {
    let mut ranks: Ranks = core::array::from_fn(|bucket| bucket as u8);
    // Coordinates relative to the end of the curve: the rest, as negative numbers.
    let mut here = Point::default();
    let mut left = 0.0;
    let mut hull = [here; BUCKETS + 1];
    let mut corners = 1;
    let mut weights = [1.0; BUCKETS];
    (1..BUCKETS).for_each(|bucket| weights[bucket] = weights[bucket - 1] * aim.fading());
    for bucket in (0..BUCKETS).rev() {
        let likely = mass[bucket];
        if left + likely == 0.0 {
            continue;
        }
        let width = (start_ns(bucket + 1) - start_ns(bucket)) as f64;
        // Completions are assumed to be uniform within their bucket.
        here.area -= width * (left + likely / 2.0);
        here.gain -= likely * weights[bucket];
        left += likely;
        while corners > 1 && here.slope_to(hull[corners - 1]) <= here.slope_to(hull[corners - 2]) {
            corners -= 1;
        }
        ranks[bucket] = aim.rank(1.0 / here.slope_to(hull[corners - 1]));
        hull[corners] = here;
        corners += 1;
    }
    ranks
}

/// The ranks without any history: one level for each doubling of attained service, as in a
/// multilevel feedback queue.
pub fn doublings() -> Ranks {
    core::array::from_fn(|bucket| (bucket as u64 / PARTS * PARTS) as u8)
}

#[cfg(test)]
mod tests {
    use super::super::buckets::bucket;
    use super::*;

    const MS: u64 = 1_000_000;
    const AIMS: [Aim; 3] = [Aim::Turnaround, Aim::Both, Aim::Slowdown];

    fn mass(parts: &[(u64, f64)]) -> Mass {
        let mut mass = [0.0; BUCKETS];
        for (ns, share) in parts {
            mass[bucket(*ns)] += share;
        }
        mass
    }

    /// By definition, over all pairs of bucket ends.
    fn by_definition(mass: &Mass, aim: Aim) -> Ranks {
        let power = [0.0, -0.5, -1.0][aim as usize];
        let weight = |bucket: usize| 2f64.powf(bucket as f64 / 4.0 * power);
        core::array::from_fn(|from| {
            let (mut done, mut spent, mut best) = (0.0, 0.0, 0.0f64);
            for to in from..BUCKETS {
                let later: f64 = mass[to + 1..].iter().sum();
                let width = (start_ns(to + 1) - start_ns(to)) as f64;
                done += mass[to] * weight(to);
                spent += width * (later + mass[to] / 2.0);
                best = if spent > 0.0 {
                    best.max(done / spent)
                } else {
                    best
                };
            }
            if best == 0.0 {
                return from as u8;
            }
            let rank = 4.0 * ((1.0 / best).log2() - 16.0) / (1.0 - power);
            (1.0 + rank).clamp(0.0, 89.0) as u8
        })
    }

    #[test]
    fn agrees_with_the_definition() {
        let cases = [
            mass(&[(10 * MS, 1.0)]),
            mass(&[(MS, 0.5), (100 * MS, 0.5)]),
            mass(&[(MS, 5.0), (2 * MS, 1.0), (300 * MS, 3.0), (9000 * MS, 0.1)]),
            mass(&[(0, 1.0), (u64::MAX, 1.0)]),
            core::array::from_fn(|bucket| 1.0 / (1.0 + bucket as f64)),
            [0.0; BUCKETS],
        ];
        for (mass, aim) in cases.iter().flat_map(|mass| AIMS.map(|aim| (mass, aim))) {
            let (found, want) = (ranks(mass, aim), by_definition(mass, aim));
            for (bucket, (found, want)) in found.iter().zip(want).enumerate() {
                // Rounding may cross the boundary between two ranks.
                assert!(
                    found.abs_diff(want) <= 1,
                    "{aim:?} {bucket}: {found} {want}"
                );
            }
        }
    }

    #[test]
    fn an_empty_distribution_has_a_level_for_each_bucket() {
        let levels: Ranks = core::array::from_fn(|bucket| bucket as u8);
        assert_eq!(ranks(&[0.0; BUCKETS], Aim::Both), levels);
    }

    #[test]
    fn without_history_each_doubling_is_a_level() {
        let ranks = doublings();
        assert_eq!(ranks[0], 0);
        for bucket in 0..BUCKETS - 4 {
            assert_eq!(ranks[bucket] + 4, ranks[bucket + 4]);
            assert!(ranks[bucket] <= ranks[bucket + 1] && usize::from(ranks[bucket]) <= bucket);
        }
    }

    #[test]
    fn ranks_follow_the_remaining_time() {
        for aim in AIMS {
            let ranks = ranks(&mass(&[(500 * MS, 1.0)]), aim);
            assert!(ranks[0].abs_diff(bucket(500 * MS) as u8) <= 1, "{aim:?}");
            assert!(ranks[bucket(400 * MS)] < ranks[0]);
        }
    }

    #[test]
    fn an_early_completion_is_tried_first() {
        for aim in AIMS {
            let ranks = ranks(&mass(&[(MS, 0.5), (1000 * MS, 0.5)]), aim);
            assert!(ranks[0] <= bucket(3 * MS) as u8);
            let behind = bucket(MS) + 1;
            assert!(ranks[behind] >= bucket(800 * MS) as u8);
            // The closer to the end, the better; beyond it, nothing is known.
            assert!(ranks[bucket(900 * MS)] < ranks[behind]);
            assert_eq!(ranks[bucket(2000 * MS)], bucket(2000 * MS) as u8);
        }
    }

    #[test]
    fn a_constant_hazard_gives_flat_or_worsening_ranks() {
        // Exponential, mean 100 ms.
        let tail = |ns: u64| (-(ns as f64) / 1e8).exp();
        let mass: Mass = core::array::from_fn(|one| tail(start_ns(one)) - tail(start_ns(one + 1)));
        let (early, late) = (bucket(MS), bucket(300 * MS));
        let flat = ranks(&mass, Aim::Turnaround);
        assert!(flat[early].abs_diff(flat[late]) <= 1);
        let steep = ranks(&mass, Aim::Slowdown);
        assert!(steep[early] + 4 < steep[late]);
    }

    #[test]
    fn scale_does_not_matter() {
        let one = mass(&[(MS, 0.5), (7 * MS, 0.2), (1000 * MS, 0.3)]);
        let more = one.map(|mass| mass * 4096.0);
        assert_eq!(ranks(&one, Aim::Both), ranks(&more, Aim::Both));
    }
}
