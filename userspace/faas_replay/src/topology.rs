//! Which CPUs share a last-level cache, and which are on one NUMA node, as sysfs tells.

use std::fs;
use std::path::Path;

/// The folder in which sysfs tells about CPUs and nodes.
const SYSTEM: &str = "/sys/devices/system";

/// CPUs that Linux can have at most, on any architecture.
const MOST_CPUS: usize = 8192;

/// Where a CPU is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Its last-level cache: the first CPU that shares it.
    pub cache: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// The places of all CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    places: Vec<Place>,
    /// Whether sysfs tells what each CPU shares.
    knows_caches: bool,
    knows_nodes: bool,
}

impl Topology {
    /// The topology with these places, by number of the CPU.
    pub fn of(places: Vec<Place>) -> Self {
        Self {
            places,
            knows_caches: true,
            knows_nodes: true,
        }
    }

    /// The topology of this machine. Where sysfs does not tell, all CPUs share one cache and
    /// one node.
    pub fn read() -> Self {
        Self::read_from(Path::new(SYSTEM))
    }

    fn read_from(system: &Path) -> Self {
        let present = fs::read_to_string(system.join("cpu/possible"));
        let cpus = present.map(|text| list(&text)).unwrap_or_default();
        let count = cpus.last().map_or(0, |last| last + 1);
        let mut topology = Self {
            places: vec![Place::default(); count],
            knows_caches: count > 0,
            knows_nodes: count > 0,
        };
        topology.read_nodes(system);
        for cpu in cpus {
            let folder = system.join(format!("cpu/cpu{cpu}"));
            // An offline CPU has no cache, and nothing runs there.
            match last_level(&folder.join("cache")) {
                Some(cache) => topology.places[cpu].cache = cache,
                None if is_offline(&folder) => {}
                None => topology.knows_caches = false,
            }
        }
        if !topology.knows_caches {
            topology.places.iter_mut().for_each(|one| one.cache = 0);
        }
        topology
    }

    fn read_nodes(&mut self, system: &Path) {
        let mut seen = false;
        let entries = fs::read_dir(system.join("node")).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix("node").and_then(|text| text.parse().ok());
            let cpus = fs::read_to_string(entry.path().join("cpulist"));
            let (Some(node), Ok(cpus)) = (number, cpus) else {
                continue;
            };
            seen = true;
            for cpu in list(&cpus) {
                if let Some(place) = self.places.get_mut(cpu) {
                    place.node = node;
                }
            }
        }
        self.knows_nodes &= seen;
    }

    /// Where a CPU is; a CPU that sysfs does not name shares the first one's cache and node.
    pub fn place(&self, cpu: usize) -> Place {
        let first = self.places.first().copied();
        let known = self.places.get(cpu).copied().or(first);
        known.unwrap_or_default()
    }

    /// What sysfs does not tell, in words; `None` if it tells all.
    pub fn unknown(&self) -> Option<&'static str> {
        match (self.knows_caches, self.knows_nodes) {
            (true, true) => None,
            (false, true) => Some("which CPUs share a last-level cache"),
            (true, false) => Some("which CPUs are on which NUMA node"),
            (false, false) => Some("which CPUs share a last-level cache or a NUMA node"),
        }
    }
}

fn is_offline(cpu: &Path) -> bool {
    let online = fs::read_to_string(cpu.join("online"));
    !cpu.exists() || online.is_ok_and(|text| text.trim() == "0")
}

/// The first CPU that shares the largest level of the caches in this folder.
fn last_level(caches: &Path) -> Option<u32> {
    let entries = fs::read_dir(caches).ok()?.flatten();
    let found = entries.filter_map(|entry| {
        let read = |name| fs::read_to_string(entry.path().join(name)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        let shared = list(&read("shared_cpu_list")?);
        Some((level, *shared.first()? as u32))
    });
    found.max().map(|(_, first)| first)
}

/// The numbers of a list such as `0-3,8`, in order. What cannot be read is left out.
fn list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',');
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last < MOST_CPUS).then_some(first..=last)
    };
    ranges.filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files of a sysfs, each a path and its content.
    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn caches_and_nodes_are_those_of_sysfs() {
        let folder = sysfs(&[
            ("cpu/possible", "0-3\n"),
            ("cpu/cpu0/cache/index0/level", "1\n"),
            ("cpu/cpu0/cache/index0/shared_cpu_list", "0\n"),
            ("cpu/cpu0/cache/index3/level", "3\n"),
            ("cpu/cpu0/cache/index3/shared_cpu_list", "0-1\n"),
            ("cpu/cpu1/cache/index3/level", "3\n"),
            ("cpu/cpu1/cache/index3/shared_cpu_list", "0-1\n"),
            ("cpu/cpu2/cache/index3/level", "3\n"),
            ("cpu/cpu2/cache/index3/shared_cpu_list", "2\n"),
            ("cpu/cpu3/online", "0\n"),
            ("node/node0/cpulist", "0-1\n"),
            ("node/node1/cpulist", "2-3\n"),
            ("node/possible", "0-1\n"),
        ]);
        let topology = Topology::read_from(folder.path());
        assert_eq!(topology.unknown(), None);
        let places: Vec<(u32, u32)> = (0..4)
            .map(|cpu| topology.place(cpu))
            .map(|place| (place.cache, place.node))
            .collect();
        assert_eq!(places, [(0, 0), (0, 0), (2, 1), (0, 1)]);
        assert_eq!(topology.place(99), topology.place(0));
    }

    #[test]
    fn what_sysfs_does_not_tell_is_said() {
        let without = |files: &[(&str, &str)]| {
            let topology = Topology::read_from(sysfs(files).path());
            topology.unknown().unwrap()
        };
        let cache = [
            ("cpu/possible", "0\n"),
            ("cpu/cpu0/cache/index2/level", "2\n"),
            ("cpu/cpu0/cache/index2/shared_cpu_list", "0\n"),
        ];
        assert_eq!(without(&cache), "which CPUs are on which NUMA node");
        let node = [
            ("cpu/possible", "0\n"),
            ("cpu/cpu0/topology", ""),
            ("node/node0/cpulist", "0\n"),
        ];
        assert_eq!(without(&node), "which CPUs share a last-level cache");
        assert!(without(&[]).ends_with("or a NUMA node"));
        assert_eq!(Topology::default().place(3), Place::default());
    }

    #[test]
    fn lists_are_numbers_and_ranges() {
        assert_eq!(list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list("\n"), [0usize; 0]);
        assert_eq!(list("x,3-,9999999999,0-99999,4"), [4]);
    }
}
