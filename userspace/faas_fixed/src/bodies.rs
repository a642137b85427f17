//! The work: loops that do exactly as many iterations as they are told.

mod branch;
mod chase;
mod sum;

use branch::Branch;
use chase::Chase;
use faas_data::fixed::{Body, Kernel};
use std::collections::TryReserveError;
use sum::Sum;

/// One cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Line([u64; 8]);

/// `count` lines, each written once.
///
/// # Errors
/// If there is no memory for them.
fn lines(count: usize, line: impl Fn(usize) -> Line) -> Result<Vec<Line>, TryReserveError> {
    let mut lines = Vec::new();
    lines.try_reserve_exact(count)?;
    lines.extend((0..count).map(line));
    Ok(lines)
}

/// A working set, and how far the work on it has come.
#[derive(Debug)]
enum Made {
    Chase(Chase),
    Sum(Sum),
    Branch(Branch),
}

impl Made {
    fn new(kernel: Kernel) -> Result<Self, TryReserveError> {
        let count = kernel.set.bytes() / size_of::<Line>();
        Ok(match kernel.body {
            Body::Chase => Self::Chase(Chase::new(count)?),
            Body::Sum => Self::Sum(Sum::new(count)?),
            Body::Branch => Self::Branch(Branch::new(count)?),
        })
    }
}

/// The working sets of one process.
#[derive(Debug, Default)]
pub struct Bodies {
    made: [Option<Made>; Kernel::COUNT],
}

impl Bodies {
    /// Makes the working set of `kernel`, unless it is there.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn make(&mut self, kernel: Kernel) -> Result<(), TryReserveError> {
        self.made(kernel).map(drop)
    }

    /// Does `iterations` of `kernel`, which go on where the last ones ended,
    /// and returns what they have computed.
    ///
    /// # Errors
    /// If there is no memory for the working set.
    pub fn run(&mut self, kernel: Kernel, iterations: u64) -> Result<u64, TryReserveError> {
        Ok(match self.made(kernel)? {
            Made::Chase(chase) => chase.run(iterations),
            Made::Sum(sum) => sum.run(iterations),
            Made::Branch(branch) => branch.run(iterations),
        })
    }

    fn made(&mut self, kernel: Kernel) -> Result<&mut Made, TryReserveError> {
        let place = &mut self.made[kernel.number()];
        let made = match place.take() {
            Some(made) => made,
            None => Made::new(kernel)?,
        };
        Ok(place.insert(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each kind has computed after 10,000 and 3 more iterations. Builds
    /// with and without the optimiser find the same.
    #[test]
    fn results_are_the_same_in_every_build() {
        let results = Kernel::ALL.map(|kernel| {
            let mut bodies = Bodies::default();
            let first = bodies.run(kernel, 10_000).unwrap();
            (first, bodies.run(kernel, 3).unwrap())
        });
        assert_eq!(results, KNOWN);
    }

    const KNOWN: [(u64, u64); Kernel::COUNT] = [
        (163, 330),
        (2497, 12_864),
        (18_182, 93_997),
        (20_458_880, 6636),
        (400_240_000, 240_108),
        (400_240_000, 240_108),
        (3_274_213_563_687_221_806, 6_679_354_357_258_820_237),
        (3_756_541_029_277_819_978, 15_499_279_078_254_483_622),
        (3_756_541_029_277_819_978, 15_499_279_078_254_483_622),
    ];

    #[test]
    fn iterations_go_on_where_the_last_ones_ended() {
        for kernel in Kernel::ALL {
            let (mut once, mut twice) = (Bodies::default(), Bodies::default());
            twice.make(kernel).unwrap();
            for part in [0, 1, 700, 4_299] {
                twice.run(kernel, part).unwrap();
            }
            once.run(kernel, 5_000).unwrap();
            let next = [once.run(kernel, 1), twice.run(kernel, 1)];
            assert_eq!(next[0], next[1], "{kernel:?}");
        }
    }
}
