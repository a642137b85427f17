//! What CPUs share: cores, caches, nodes. And CPUs that are isolated (isolcpus=).

use crate::numbers::between;
use rand_chacha::ChaCha8Rng;

/// What a CPU shares with others, by number; `struct model_place`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its core.
    pub core: u16,
    /// Its last-level cache.
    pub cache: u16,
    /// Its node.
    pub node: u16,
    /// No task runs here unless it is bound to it.
    pub isolated: bool,
}

/// Draws the places of `cpus` CPUs. Half of the machines have one cache and no siblings.
pub fn draw(random: &mut ChaCha8Rng, cpus: usize) -> Vec<Place> {
    let is_flat = between(random, 0, 1) == 0;
    let threads = if is_flat { 1 } else { between(random, 1, 2) } as usize;
    let cores = cpus.div_ceil(threads);
    // Siblings are beside each other, or half of the machine apart.
    let beside = between(random, 0, 1) == 0;
    let of_cache = match between(random, 0, 2) {
        _ if is_flat => cores,
        0 => cores,
        _ => between(random, 1, cores as u64) as usize,
    };
    let of_node = match between(random, 0, 2) {
        _ if is_flat => cores,
        0 => cores,
        _ => of_cache * between(random, 1, 2) as usize,
    };
    let isolated = match between(random, 0, 7) {
        0 => between(random, 0, cpus as u64 / 2) as usize,
        _ => 0,
    };
    let place = |cpu: usize| {
        let core = if beside { cpu / threads } else { cpu % cores };
        Place {
            core: core as u16,
            cache: (core / of_cache) as u16,
            node: (core / of_node) as u16,
            isolated: cpu >= cpus - isolated,
        }
    };
    (0..cpus).map(place).collect()
}

/// The places of `cpus` CPUs with one cache and no siblings.
pub fn flat(cpus: usize) -> Vec<Place> {
    let place = |cpu| Place {
        core: cpu as u16,
        cache: 0,
        node: 0,
        isolated: false,
    };
    (0..cpus).map(place).collect()
}
