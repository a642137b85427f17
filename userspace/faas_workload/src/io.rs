//! I/O: invocations that block.

use super::random::Random;
use super::MAX_SERVICE_US;
use faas_data::trace::Phase;

/// Number of times that an invocation blocks with `several`.
const SEVERAL: u64 = 3;

/// When an invocation blocks, within its service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before any computation, as in the SFS paper
    Start,
    /// Once, after half of its service time
    Middle,
    /// Three times for a third each, after a quarter, a half and three
    /// quarters of its service time
    Several,
}

/// Which invocations block, when and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Io {
    /// Share of the invocations that block, 0 to 1.
    pub share: f64,
    /// Minimum total time blocked, in microseconds.
    pub low_us: f64,
    /// Maximum total time blocked, in microseconds; the time is uniform.
    pub high_us: f64,
    /// When it blocks, within its service time.
    pub place: Place,
}

impl Io {
    /// The phases of an invocation that computes for `service_us` (1 or more).
    pub fn phases(&self, service_us: u64, random: &mut Random) -> Vec<Phase> {
        // Both numbers are drawn for every invocation, so that a larger share
        // makes more of them block and leaves the others unchanged.
        let blocks = random.unit() < self.share;
        let io_us = random.uniform(self.low_us, self.high_us).round() as u64;
        if !blocks {
            return vec![Phase::cpu(service_us)];
        }
        let io_us = io_us.clamp(1, MAX_SERVICE_US);
        match self.place {
            Place::Start => vec![Phase::io(io_us), Phase::cpu(service_us)],
            Place::Middle => interleave(service_us, io_us, 1),
            Place::Several => interleave(service_us, io_us, SEVERAL),
        }
    }
}

/// `times` blocks with equal parts of the service time before, between and
/// after them, without empty parts.
fn interleave(service_us: u64, io_us: u64, times: u64) -> Vec<Phase> {
    let mut phases = Vec::with_capacity(2 * times as usize + 1);
    for index in 0..=times {
        phases.push(Phase::cpu(part(service_us, index, times + 1)));
        if index < times {
            phases.push(Phase::io(part(io_us, index, times)));
        }
    }
    phases.retain(|phase| phase.us() > 0);
    phases
}

/// The part at `index` when `whole` is divided into `count`; the parts add up
/// to it.
fn part(whole: u64, index: u64, count: u64) -> u64 {
    whole * (index + 1) / count - whole * index / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(us: u64) -> Phase {
        Phase::cpu(us)
    }

    fn block(us: u64) -> Phase {
        Phase::io(us)
    }

    fn io(share: f64, place: Place) -> Io {
        Io {
            share,
            low_us: 10e3,
            high_us: 100e3,
            place,
        }
    }

    fn blocked(phases: &[Phase]) -> u64 {
        phases.iter().map(|phase| phase.us() - phase.cpu_us()).sum()
    }

    #[test]
    fn the_share_blocks_for_times_in_the_range() {
        let mut random = Random::new(1);
        let paper = io(0.75, Place::Start);
        let all: Vec<u64> = (0..100_000)
            .map(|_| blocked(&paper.phases(5, &mut random)))
            .collect();
        let some: Vec<u64> = all.into_iter().filter(|us| *us > 0).collect();
        assert!(some.iter().all(|us| (10_000..=100_000).contains(us)));
        let share = some.len() as f64 / 1e5;
        // Three standard errors: 3 x sqrt(0.75 x 0.25 / 100,000) = 0.0041
        assert!((share - 0.75).abs() < 0.0041, "{share}");
        let mean = some.iter().sum::<u64>() as f64 / some.len() as f64;
        assert!((mean / 55e3 - 1.0).abs() < 0.006, "{mean}");
    }

    #[test]
    fn none_and_all_are_possible() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert_eq!(io(0.0, Place::Start).phases(5, &mut random), [cpu(5)]);
            assert!(blocked(&io(1.0, Place::Middle).phases(5, &mut random)) > 0);
        }
    }

    #[test]
    fn blocks_are_at_their_places() {
        assert_eq!(interleave(100, 7, 1), [cpu(50), block(7), cpu(50)]);
        assert_eq!(
            interleave(10, 8, 3),
            [cpu(2), block(2), cpu(3), block(3), cpu(2), block(3), cpu(3)]
        );
        // Too short to divide: nothing is lost.
        assert_eq!(interleave(1, 1, 1), [block(1), cpu(1)]);
        assert_eq!(interleave(1, 2, 3), [block(1), block(1), cpu(1)]);
    }
}
