//! What only some machines have ([`Oddities`]), as they live: hints come, and memory lacks.

use crate::state::State;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sfs_kernel_draws::numbers::between;
pub use sfs_kernel_draws::oddities::Oddities;

/// The same with their random numbers.
#[derive(Debug)]
pub struct Odd {
    /// What the machine has.
    pub of: Oddities,
    /// The scheduler is loaded: from now on memory may lack.
    pub is_loaded: bool,
    /// Random numbers for them.
    pub random: ChaCha8Rng,
}

impl Odd {
    /// A machine with these, and random numbers for them.
    pub fn new(of: Oddities, random: ChaCha8Rng) -> Self {
        Self {
            of,
            is_loaded: false,
            random,
        }
    }
}

impl Default for Odd {
    fn default() -> Self {
        Self::new(Oddities::default(), ChaCha8Rng::seed_from_u64(0))
    }
}

/// Returns true if there is no memory for what is allocated now.
pub fn lacks_memory(s: &mut State) -> bool {
    let of = s.odd.of.no_memory_of;
    s.odd.is_loaded && of > 0 && between(&mut s.odd.random, 1, of) == 1
}
