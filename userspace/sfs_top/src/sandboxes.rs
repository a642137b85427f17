//! The sandboxes' own figures: the files of their cgroups.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use sfs_cgroups::SandboxPattern;

use crate::machine::{pressure_share, some_total_us};
use crate::sample::{Sandbox, Sandboxes};

/// Maximum number of sandboxes of one look, which keeps it short.
const MOST: usize = 2000;

/// Which cgroups are sandboxes.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    patterns: Vec<SandboxPattern>,
    by_parent: bool,
}

impl Patterns {
    /// Takes the patterns from what the scheduler says about its configuration.
    pub fn of_configuration(report: &Value) -> Self {
        let keys = report["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let value = |name: &str| {
            let key = keys.iter().find(|one| one["key"] == name);
            key.map_or(&Value::Null, |one| &one["value"])
        };
        let texts = value("cgroup").as_array().into_iter().flatten();
        let patterns = texts.filter_map(|one| SandboxPattern::parse(one.as_str()?).ok());
        Self {
            patterns: patterns.collect(),
            by_parent: value("identity") == "parent",
        }
    }

    /// Returns whether no cgroup is a sandbox.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}

/// What the last look found in one sandbox.
struct Before {
    usage_us: u64,
    pressure_us: Option<u64>,
}

/// Reads the sandboxes; rates are of the time since the previous look.
pub struct SandboxReader {
    root: PathBuf,
    before: HashMap<String, Before>,
    looked_at: Option<Instant>,
}

impl SandboxReader {
    /// Reads cgroups below `root`.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            before: HashMap::new(),
            looked_at: None,
        }
    }

    /// Looks once at all cgroups that match `patterns`.
    pub fn look(&mut self, patterns: &Patterns, now: Instant) -> Sandboxes {
        let mut paths = Vec::new();
        for pattern in &patterns.patterns {
            paths.extend(pattern.paths(&self.root, MOST + 1));
        }
        paths.sort();
        paths.dedup();
        let more = paths.len() > MOST;
        paths.truncate(MOST);
        let mut seen = HashMap::new();
        let mut list: Vec<Sandbox> = Vec::new();
        for path in paths {
            if let Some((mut one, found)) = self.read(&path, now) {
                let mut names = patterns.patterns.iter();
                one.function = names.find_map(|it| it.function_of(&path, patterns.by_parent));
                seen.insert(path, found);
                list.push(one);
            }
        }
        let used = |one: &Sandbox| one.cpus_used.unwrap_or(0.0);
        let all: f64 = list.iter().map(used).sum();
        for one in &mut list {
            one.share = one.cpus_used.filter(|_| all > 0.0).map(|used| used / all);
        }
        self.before = seen;
        self.looked_at = Some(now);
        Sandboxes { list, more }
    }

    /// Reads one; None: it has gone.
    fn read(&self, path: &str, now: Instant) -> Option<(Sandbox, Before)> {
        let folder = self.root.join(path);
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let usage_us = number_after(&read("cpu.stat")?, "usage_usec ")?;
        let pressure_us = read("cpu.pressure").and_then(|text| some_total_us(&text));
        let before = self.before.get(path).zip(self.looked_at);
        // A cgroup of the same name may have been made anew.
        let cpus_used = before.and_then(|(before, since)| {
            let used_us = usage_us.checked_sub(before.usage_us)?;
            let time = now.duration_since(since).as_secs_f64();
            (time > 0.0).then(|| used_us as f64 / 1e6 / time)
        });
        let pressure = before.and_then(|(before, since)| {
            pressure_share(
                before.pressure_us.map(|us| (us, since)),
                pressure_us.map(|us| (us, now)),
            )
        });
        let threads = || Some(read("cgroup.threads")?.lines().count() as u64);
        let pids = read("pids.current").and_then(|text| text.trim().parse().ok());
        let sandbox = Sandbox {
            cgroup: path.to_owned(),
            function: None,
            cpus_used,
            share: None,
            cpu_s: usage_us as f64 / 1e6,
            pressure_share: pressure,
            tasks: pids.or_else(threads),
            weight: read("cpu.weight").and_then(|text| text.trim().parse().ok()),
            quota_cpus: read("cpu.max").and_then(|text| quota_cpus(&text)),
        };
        Some((
            sandbox,
            Before {
                usage_us,
                pressure_us,
            },
        ))
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Returns the quota in `cpu.max`, in CPUs; None: there is none.
fn quota_cpus(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn patterns() -> Patterns {
        Patterns::of_configuration(&json!({"keys": [
            {"key": "slice-us", "value": null},
            {"key": "cgroup", "value": ["f/*", "*/a-1"]},
        ]}))
    }

    #[test]
    fn the_configuration_names_the_sandboxes() {
        assert!(!patterns().is_empty() && !patterns().by_parent);
        let parent = json!({"keys": [{"key": "identity", "value": "parent"}]});
        let parent = Patterns::of_configuration(&parent);
        assert!(parent.is_empty() && parent.by_parent);
        for odd in [json!(null), json!({"keys": 7}), json!({"keys": [7]})] {
            assert!(Patterns::of_configuration(&odd).is_empty());
        }
    }

    #[test]
    fn sandboxes_are_read_and_compared_with_the_last_look() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let start = Instant::now();
        let mut reader = SandboxReader::new(root.path());
        put("f/a-1/cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
        put("f/a-1/cpu.pressure", "some avg10=0.00 total=5\n");
        put("f/a-1/cgroup.threads", "5\n6\n7\n");
        put("f/a-1/cpu.weight", "50\n");
        put("f/a-1/cpu.max", "150000 100000\n");
        put("f/b-2/cpu.stat", "usage_usec 0\n");
        put("f/b-2/pids.current", "9\n");
        put("f/b-2/cpu.max", "max 100000\n");
        put("g/c/cpu.stat", "usage_usec 7\n");
        let first = reader.look(&patterns(), start);
        assert_eq!(first.list.len(), 2, "{first:?}");
        let a = &first.list[0];
        assert_eq!((a.cgroup.as_str(), a.tasks), ("f/a-1", Some(3)));
        assert_eq!((a.weight, a.quota_cpus), (Some(50), Some(1.5)));
        assert_eq!(a.function.as_deref(), Some("f/a"));
        assert_eq!((a.cpus_used, a.share), (None, None));
        let b = &first.list[1];
        assert_eq!((b.tasks, b.quota_cpus, b.weight), (Some(9), None, None));

        put("f/a-1/cpu.stat", "usage_usec 4000000\n");
        put("f/a-1/cpu.pressure", "some avg10=0.00 total=500005\n");
        put("f/b-2/cpu.stat", "usage_usec 1000000\n");
        let second = reader.look(&patterns(), start + Duration::from_secs(2));
        let used: Vec<_> = second.list.iter().map(|one| one.cpus_used).collect();
        assert_eq!(used, [Some(1.5), Some(0.5)]);
        assert_eq!(second.list[0].share, Some(0.75));
        assert_eq!(second.list[0].pressure_share, Some(0.25));

        // Gone, and made anew.
        fs::remove_dir_all(root.path().join("f/b-2")).unwrap();
        put("f/a-1/cpu.stat", "usage_usec 3\n");
        let third = reader.look(&patterns(), start + Duration::from_secs(3));
        assert_eq!(third.list.len(), 1);
        assert_eq!(third.list[0].cpus_used, None);
        assert!(!third.more);
    }
}
