//! Shards: how FILTER is split on machines with very many CPUs.

use std::str::FromStr;

use anyhow::{Context, Result};
use scx_utils::{Topology, NR_CPU_IDS};
use tracing::warn;

use crate::bpf_intf::{SFS_MAX_CPUS, SFS_MAX_SHARDS};

/// By default, up to this many CPUs share one queue. In other schedulers one queue collapsed
/// from about 100 CPUs on; docs/simulation.md has figures.
const CPUS_OF_ONE_QUEUE: usize = 64;

/// Caches with fewer CPUs share a shard with their neighbours. First-in-first-out order holds
/// within a shard, and more CPUs in a shard even out their load.
const LEAST_CPUS: usize = 16;

/// Number of shards of FILTER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// One on a small machine, otherwise about one for each last-level cache.
    Auto,
    /// This many, of similar size.
    Number(usize),
}

impl FromStr for Shards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let most = SFS_MAX_SHARDS as usize;
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(Self::Number(number)),
            _ => Err(format!("neither 'auto' nor a number from 1 to {most}")),
        }
    }
}

/// Position of a CPU in the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    node: usize,
    cache: usize,
    core: usize,
    cpu: usize,
}

/// The assignment of CPUs to shards.
#[derive(Debug, PartialEq, Eq)]
pub struct Partition {
    /// The number of shards.
    pub shards: u32,
    /// The shard of each CPU, indexed by CPU number.
    pub of_cpu: [u8; SFS_MAX_CPUS as usize],
}

/// Splits this machine's CPUs according to `wanted`.
///
/// # Errors
///
/// The topology cannot be read, and a number of shards is requested.
pub fn partition(wanted: Shards) -> Result<Partition> {
    let small = *NR_CPU_IDS <= CPUS_OF_ONE_QUEUE;
    if wanted == Shards::Number(1) || (wanted == Shards::Auto && small) {
        return Ok(assign(&[]));
    }
    let mut places = match (Topology::new(), wanted) {
        (Ok(topology), _) => places_of(&topology),
        (Err(error), Shards::Auto) => {
            warn!("FILTER is one queue, since the machine's topology cannot be read: {error:#}");
            return Ok(assign(&[]));
        }
        (Err(error), Shards::Number(_)) => {
            return Err(error).context(
                "cannot read the machine's topology, which --filter-shards needs; 1 works without",
            );
        }
    };
    places.sort_unstable();
    if let Shards::Number(number) = wanted {
        if number > places.len() {
            // Not an error: CPUs may have gone offline, and scheduling must go on.
            warn!(
                "--filter-shards {number} exceeds the number of online CPUs, {}: one shard per \
                 CPU",
                places.len()
            );
        }
    }
    Ok(assign(&split(&places, wanted)))
}

fn places_of(topology: &Topology) -> Vec<Place> {
    let cpus = topology.all_cpus.values();
    cpus.map(|cpu| Place {
        node: cpu.node_id,
        cache: cpu.llc_id,
        core: cpu.core_id,
        cpu: cpu.id,
    })
    .collect()
}

/// Splits the sorted `places` into shards, none of them empty.
fn split(places: &[Place], wanted: Shards) -> Vec<&[Place]> {
    match wanted {
        Shards::Number(number) => equal_parts(places, number.min(places.len())),
        Shards::Auto if places.len() <= CPUS_OF_ONE_QUEUE => vec![places],
        Shards::Auto => {
            let shards = by_cache(places);
            let most = SFS_MAX_SHARDS as usize;
            if shards.len() > most {
                equal_parts(places, most)
            } else {
                shards
            }
        }
    }
}

/// Splits `places` into `number` parts whose sizes differ by at most one.
fn equal_parts(places: &[Place], number: usize) -> Vec<&[Place]> {
    let cut = |part| part * places.len() / number;
    (0..number)
        .map(|part| &places[cut(part)..cut(part + 1)])
        .collect()
}

/// One shard for each last-level cache. Small caches of one node are joined, large ones split.
fn by_cache(places: &[Place]) -> Vec<&[Place]> {
    let mut shards: Vec<&[Place]> = Vec::new();
    let mut rest = places;
    while let Some(first) = rest.first() {
        let mut end = 0;
        while end < rest.len() && rest[end].node == first.node {
            let cache = cache_len(&rest[end..]);
            if end > 0 && (end >= LEAST_CPUS || end + cache > CPUS_OF_ONE_QUEUE) {
                break;
            }
            end += cache;
        }
        let parts = end.div_ceil(CPUS_OF_ONE_QUEUE);
        shards.extend(equal_parts(&rest[..end], parts));
        rest = &rest[end..];
    }
    shards
}

/// Returns the number of CPUs that share the first one's cache.
fn cache_len(places: &[Place]) -> usize {
    let of = |place: &Place| (place.node, place.cache);
    places
        .iter()
        .take_while(|one| of(one) == of(&places[0]))
        .count()
}

fn assign(shards: &[&[Place]]) -> Partition {
    let mut of_cpu = [0; SFS_MAX_CPUS as usize];
    for (shard, places) in shards.iter().enumerate() {
        for place in *places {
            // CPU numbers beyond the limit wrap around, as in the kernel half.
            of_cpu[place.cpu % SFS_MAX_CPUS as usize] = shard as u8;
        }
    }
    Partition {
        shards: shards.len().max(1) as u32,
        of_cpu,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a machine with `nodes` nodes, `caches` caches in each, and `cpus` CPUs in each
    /// cache.
    fn machine(nodes: usize, caches: usize, cpus: usize) -> Vec<Place> {
        let place = |cpu| Place {
            node: cpu / cpus / caches,
            cache: cpu / cpus,
            core: cpu / 2,
            cpu,
        };
        (0..nodes * caches * cpus).map(place).collect()
    }

    fn sizes(places: &[Place], wanted: Shards) -> Vec<usize> {
        let shards = split(places, wanted);
        shards.iter().map(|shard| shard.len()).collect()
    }

    #[test]
    fn small_machines_have_one_queue() {
        assert_eq!(sizes(&machine(1, 1, 4), Shards::Auto), [4]);
        assert_eq!(sizes(&machine(2, 4, 8), Shards::Auto), [64]);
    }

    #[test]
    fn large_machines_have_a_queue_for_each_cache() {
        assert_eq!(sizes(&machine(2, 6, 16), Shards::Auto), [16; 12]);
        assert_eq!(sizes(&machine(2, 1, 48), Shards::Auto), [48, 48]);
    }

    #[test]
    fn small_caches_of_a_node_join() {
        assert_eq!(sizes(&machine(2, 8, 8), Shards::Auto), [16; 8]);
        assert_eq!(sizes(&machine(2, 3, 12), Shards::Auto), [24, 12, 24, 12]);
    }

    #[test]
    fn large_caches_are_split() {
        assert_eq!(sizes(&machine(1, 1, 192), Shards::Auto), [64; 3]);
        assert_eq!(
            sizes(&machine(2, 1, 130), Shards::Auto),
            [43, 43, 44].repeat(2)
        );
    }

    #[test]
    fn more_caches_than_shards_are_cut_evenly() {
        assert_eq!(sizes(&machine(8, 16, 16), Shards::Auto), [32; 64]);
    }

    #[test]
    fn there_are_at_most_as_many_shards_as_cpus() {
        assert_eq!(sizes(&machine(1, 1, 4), Shards::Number(5)), [1; 4]);
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!("auto".parse(), Ok(Shards::Auto));
        assert_eq!("64".parse(), Ok(Shards::Number(64)));
        for bad in ["0", "65", "-1", "all", ""] {
            assert!(bad.parse::<Shards>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_cpu_is_in_one_shard(
            nodes in 1usize..5, caches in 1usize..9, cpus in 1usize..25,
            number in proptest::option::of(1usize..=64),
        ) {
            let places = machine(nodes, caches, cpus);
            let wanted = number.map_or(Shards::Auto, Shards::Number);
            let shards = split(&places, wanted);
            prop_assert_eq!(&shards.concat(), &places);
            prop_assert!(shards.len() <= SFS_MAX_SHARDS as usize);
            prop_assert!(shards.iter().all(|shard| !shard.is_empty()));
        }
    }
}
