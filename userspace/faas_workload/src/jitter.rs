//! Copies of a trace with arrivals that are moved a little: if a figure changes much
//! between them, it is luck.

use crate::random::Random;
use crate::stream;
use faas_data::input::MAX_US;
use faas_data::trace::Invocation;

/// Moves each arrival by a whole number of microseconds, uniform from -`most_us` to
/// `most_us` (at most 2^31 - 1), but not out of 0 to [`MAX_US`], and sorts the invocations
/// by arrival again. Of equal arrivals the order is kept. The same seed gives the same copy.
pub fn jitter(invocations: &mut [Invocation], most_us: u32, seed: u64) {
    let mut random = Random::stream(seed, stream::JITTER);
    let most_us = most_us.min(i32::MAX as u32);
    for one in invocations.iter_mut() {
        let up = random.below(2 * most_us as usize + 1) as u64;
        let moved = (one.arrival_us + up).saturating_sub(u64::from(most_us));
        one.arrival_us = moved.min(MAX_US);
    }
    invocations.sort_by_key(|one| one.arrival_us);
}

#[cfg(test)]
mod tests {
    use super::*;
    use faas_data::trace;

    fn evenly(count: u64, every_us: u64) -> Vec<Invocation> {
        let at = |id: u64| Invocation::cpu(id * every_us, format!("f{id}"), 100 + id);
        (0..count).map(at).collect()
    }

    fn copy(of: &[Invocation], most_us: u32, seed: u64) -> Vec<Invocation> {
        let mut copy = of.to_vec();
        jitter(&mut copy, most_us, seed);
        copy
    }

    #[test]
    fn every_arrival_is_moved_within_the_bound_and_nothing_else_is() {
        let trace = evenly(2000, 1000);
        let moved = copy(&trace, 50, 1);
        let by: Vec<i64> = moved
            .iter()
            .zip(&trace)
            .map(|(copy, one)| {
                assert_eq!((&copy.function, &copy.phases), (&one.function, &one.phases));
                copy.arrival_us as i64 - one.arrival_us as i64
            })
            .collect();
        assert!(by.iter().all(|us| us.abs() <= 50));
        // The first cannot be earlier; of 2000 draws both ends are there.
        assert_eq!((by.iter().min(), by.iter().max()), (Some(&-50), Some(&50)));
        let mean = by.iter().sum::<i64>() as f64 / by.len() as f64;
        assert!(mean.abs() < 3.0, "{mean}");
    }

    #[test]
    fn a_copy_is_a_trace_and_determined_by_its_seed() {
        let trace = evenly(500, 10);
        let one = copy(&trace, 50, 1);
        assert!(trace::parse("t", trace::to_csv(&one).as_bytes()).is_ok());
        assert_eq!(one, copy(&trace, 50, 1));
        assert_ne!(one, copy(&trace, 50, 2));
        let mut sorted = one.clone();
        sorted.sort_by(|a, b| a.phases[0].us().cmp(&b.phases[0].us()));
        let phases =
            |all: &[Invocation]| all.iter().map(|one| one.phases.clone()).collect::<Vec<_>>();
        assert_eq!(phases(&sorted), phases(&trace));
    }
}
