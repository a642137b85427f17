//! Patterns for the paths of sandboxes.

use std::path::Path;

use glob::Pattern;

use crate::CGROUP_ROOT;

/// Placeholder for the function's name in a component of a pattern.
const FUNCTION: &str = "{function}";

/// A pattern for the paths of sandboxes, below the root of the cgroup hierarchy: one pattern
/// for each component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPattern {
    components: Vec<Component>,
}

/// A pattern for the name of one cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Component {
    /// Any name that the glob matches.
    Any(Pattern),
    /// The function's name, with globs for the text before and after it.
    Function(Pattern, Pattern),
}

impl Component {
    fn parse(text: &str) -> Result<Self, String> {
        let glob = |part| Pattern::new(part).map_err(|error| format!("`{text}`: {error}"));
        match text.split_once(FUNCTION) {
            None => glob(text).map(Self::Any),
            Some((_, after)) if after.contains(FUNCTION) => {
                Err(format!("`{text}` has {FUNCTION} twice"))
            }
            Some((before, after)) => Ok(Self::Function(glob(before)?, glob(after)?)),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any(glob) => glob.matches(name),
            Self::Function(..) => self.function_in(name).is_some(),
        }
    }

    /// Returns the function's name in `name`, the longest possible. None if the pattern has no
    /// placeholder or does not match.
    fn function_in<'name>(&self, name: &'name str) -> Option<&'name str> {
        let Self::Function(before, after) = self else {
            return None;
        };
        let mut cuts = (0..=name.len()).filter(|cut| name.is_char_boundary(*cut));
        let start = cuts.find(|cut| before.matches(&name[..*cut]))?;
        let end = cuts.rfind(|cut| after.matches(&name[*cut..]))?;
        Some(&name[start..end])
    }
}

/// Returns the path of a sandbox without a trailing number: `resize-7` and `resize-12` are
/// sandboxes of one function.
fn without_number(path: &str) -> &str {
    let stem = path.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_number = stem.len() < path.len();
    match stem.strip_suffix(['-', '_', '.']) {
        Some(name) if is_number && !name.is_empty() && !name.ends_with('/') => name,
        _ => path,
    }
}

impl SandboxPattern {
    /// Parses a pattern such as `kubepods.slice/*/*/cri-containerd-*.scope`, with an optional
    /// leading `/sys/fs/cgroup/` or `/`.
    ///
    /// # Errors
    ///
    /// It is empty or not a pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        let below = text.strip_prefix(CGROUP_ROOT).unwrap_or(text);
        let mut components = Vec::new();
        for part in below.split('/').filter(|part| !part.is_empty()) {
            if part == "." || part == ".." || part.contains("**") {
                return Err(format!("`{part}` is not the name of a cgroup"));
            }
            components.push(Component::parse(part)?);
        }
        if components.is_empty() {
            return Err("want a path below /sys/fs/cgroup, such as functions/*".to_string());
        }
        Ok(Self { components })
    }

    /// Returns None if `name` does not match the component at `depth` (from 0), otherwise
    /// whether that completes the pattern.
    pub(super) fn step(&self, depth: usize, name: &str) -> Option<bool> {
        let component = self.components.get(depth)?;
        let last = depth + 1 == self.components.len();
        component.matches(name).then_some(last)
    }

    /// Returns the number of cgroups below the hierarchy at `root` that match now, at most `most`.
    pub fn count(&self, root: &Path, most: usize) -> usize {
        self.paths(root, most).len()
    }

    /// Returns the paths, relative to `root`, of the cgroups below it that match now, at most
    /// `most`.
    pub fn paths(&self, root: &Path, most: usize) -> Vec<String> {
        let mut found = Vec::new();
        self.find(root, "", 0, most, &mut found);
        found
    }

    /// Adds the matching cgroups in the folder `above`, whose path matches to `depth`.
    fn find(&self, root: &Path, above: &str, depth: usize, most: usize, found: &mut Vec<String>) {
        for name in crate::folders_in(&root.join(above)) {
            if found.len() >= most {
                return;
            }
            // As `Sandboxes`: other names are no sandboxes.
            let Some(name) = name.to_str() else {
                continue;
            };
            let path = match above {
                "" => name.to_owned(),
                above => format!("{above}/{name}"),
            };
            match self.step(depth, name) {
                Some(true) => found.push(path),
                Some(false) => self.find(root, &path, depth + 1, most, found),
                None => {}
            }
        }
    }

    /// Returns the name of the function whose sandbox is at `path`, relative to the root: the
    /// name from the pattern, otherwise the path of the parent cgroup (`by_parent`) or its own
    /// path. None if it is not a sandbox.
    pub fn function_of(&self, path: &str, by_parent: bool) -> Option<String> {
        let parts: Vec<&str> = path.split('/').collect();
        let pairs = || self.components.iter().zip(&parts);
        if parts.len() != self.components.len() || !pairs().all(|(one, part)| one.matches(part)) {
            return None;
        }
        let named: Vec<&str> = pairs()
            .filter_map(|(one, part)| one.function_in(part))
            .collect();
        if !named.is_empty() {
            return Some(named.join("/"));
        }
        let name = match path.rsplit_once('/') {
            Some((above, _)) if by_parent => above,
            _ => without_number(path),
        };
        Some(name.to_owned())
    }

    /// Returns whether `path`, relative to the root, is a sandbox.
    #[cfg(test)]
    fn matches(&self, path: &str) -> bool {
        self.function_of(path, false).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        SandboxPattern::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn matches_are_counted_up_to_a_bound() {
        let root = tempfile::tempdir().unwrap();
        for path in ["f/a-1", "f/a-2/below", "f/b", "g/a-1"] {
            std::fs::create_dir_all(root.path().join(path)).unwrap();
        }
        for (pattern, most, count) in [
            ("f/*", 9, 3),
            ("f/*", 2, 2),
            ("*/{function}-*", 9, 3),
            ("f/*/*", 9, 1),
            ("h/*", 9, 0),
        ] {
            let pattern = SandboxPattern::parse(pattern).unwrap();
            assert_eq!(pattern.count(root.path(), most), count, "{pattern:?}");
        }
        let pattern = SandboxPattern::parse("*/{function}-*").unwrap();
        let mut paths = pattern.paths(root.path(), 9);
        paths.sort();
        assert_eq!(paths, ["f/a-1", "f/a-2", "g/a-1"]);
    }

    #[test]
    fn the_names_of_platforms_are_matched() {
        // OpenLambda's worker, Kubernetes with the systemd and cgroupfs drivers (containerd,
        // CRI-O), Docker with both, Firecracker's jailer.
        for (pattern, path) in [
            ("*-sandboxes/cg-*", "default-ol-sandboxes/cg-17"),
            (
                "kubepods.slice/*/*/cri-containerd-*.scope",
                "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f_2.slice/cri-containerd-9ab.scope",
            ),
            (
                "kubepods.slice/kubepods-pod*.slice/crio-*.scope",
                "kubepods.slice/kubepods-pod77.slice/crio-ab12.scope",
            ),
            ("kubepods/*/pod*/*", "kubepods/besteffort/pod3c-9/0a1b2c"),
            ("system.slice/docker-*.scope", "system.slice/docker-0a1b2c.scope"),
            ("/docker/*", "docker/0a1b2c"),
            ("/sys/fs/cgroup/firecracker/*", "firecracker/551e7604-e35c"),
        ] {
            assert!(matches(pattern, path), "{pattern} should match {path}");
        }
    }

    #[test]
    fn a_pattern_matches_its_depth_only() {
        assert!(!matches("functions/*", "functions"));
        assert!(!matches("functions/*", "functions/a/b"));
        assert!(!matches("functions/*", "other/a"));
        assert!(matches("functions/?[0-9]", "functions/f1"));
    }

    #[test]
    fn a_path_names_the_function() {
        for (pattern, path, function) in [
            ("faasbench/*", "faasbench/f07-12", "faasbench/f07"),
            ("faasbench/*", "faasbench/f07", "faasbench/f07"),
            ("faasbench/*", "faasbench/-12", "faasbench/-12"),
            ("f/{function}-*", "f/image-resize-a4f", "image-resize"),
            ("{function}/*/c-*", "mail/x/c-9", "mail"),
            ("ns-{function}/pod-{function}-*", "ns-a/pod-b-7", "a/b"),
            ("f/{function}", "f/caf\u{e9}-1", "caf\u{e9}-1"),
        ] {
            let pattern = SandboxPattern::parse(pattern).unwrap();
            assert_eq!(pattern.function_of(path, false).as_deref(), Some(function));
        }
        let pattern = SandboxPattern::parse("f/*/*").unwrap();
        let by_parent = |path| pattern.function_of(path, true);
        assert_eq!(by_parent("f/resize/3").as_deref(), Some("f/resize"));
        assert_eq!(by_parent("f/resize"), None);
        let pattern = SandboxPattern::parse("f/x{function}-*").unwrap();
        assert_eq!(pattern.function_of("f/x-1", false), None);
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in [
            "{function}{function}",
            "",
            "/",
            "/sys/fs/cgroup",
            "a/**",
            "a/../b",
            "a/[b",
        ] {
            assert!(SandboxPattern::parse(text).is_err(), "{text} was accepted");
        }
    }
}
