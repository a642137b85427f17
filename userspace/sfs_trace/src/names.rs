//! Names of runners: of cgroups, functions and programs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use sfs_cgroups::{SandboxPattern, CGROUP_ROOT};
use sfs_text::word;

use crate::roster::{is_by_program, Class, Roster, Who};

/// Most cgroups whose paths are known at a time.
const MOST: usize = 262_144;

/// The paths of cgroups, also of those that are gone meanwhile.
#[derive(Debug, Default)]
pub struct Names {
    paths: HashMap<u64, String>,
    patterns: Vec<SandboxPattern>,
}

impl Names {
    /// Returns the names of the cgroups that exist below `root`, the mount point of cgroup v2, with
    /// names of functions by `patterns`.
    pub fn read(root: &Path, patterns: &[SandboxPattern]) -> Self {
        let mut names = Self {
            paths: HashMap::new(),
            patterns: patterns.to_vec(),
        };
        let mut folders = vec![(root.to_owned(), String::new())];
        while let Some((folder, path)) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue; // it has gone meanwhile
            };
            for entry in entries.flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                let name = entry.file_name();
                let below = format!("{path}/{}", name.to_string_lossy());
                names.add(entry.ino(), below.clone());
                folders.push((entry.path(), below));
            }
        }
        names
    }

    /// Returns the names of the cgroups of this machine.
    pub fn of_this_machine(patterns: &[SandboxPattern]) -> Self {
        Self::read(Path::new(CGROUP_ROOT), patterns)
    }

    /// A cgroup has been made.
    pub fn add(&mut self, id: u64, path: String) {
        if self.paths.len() < MOST || self.paths.contains_key(&id) {
            self.paths
                .insert(id, path.trim_start_matches('/').to_owned());
        }
    }

    /// Returns the path of the cgroup with this id, below the mount point, unless it is not known.
    pub fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(String::as_str)
    }

    /// Returns the name of the function whose sandbox this cgroup is, or is in. None: it is in no
    /// cgroup of the patterns.
    pub fn function_of(&self, cgroup: u64) -> Option<String> {
        let mut path = self.path(cgroup)?;
        loop {
            let name = |pattern: &SandboxPattern| pattern.function_of(path, false);
            if let Some(name) = self.patterns.iter().find_map(name) {
                return Some(name);
            }
            path = path.rsplit_once('/')?.0;
        }
    }

    /// Returns whether the cgroup is in one of the patterns. Without patterns each is.
    pub fn is_wanted(&self, cgroup: u64) -> bool {
        self.patterns.is_empty() || self.function_of(cgroup).is_some()
    }

    /// Returns the name of the runner with this number, as one printable word.
    pub fn runner(&self, roster: &Roster, number: u32) -> String {
        let who = roster.who(number);
        match who.class {
            Class::Idle => "idle".into(),
            Class::Function => word(self.function(roster, &who)),
            _ => program(&who),
        }
    }

    fn function(&self, roster: &Roster, who: &Who) -> String {
        if is_by_program(who.function) {
            return program(who);
        }
        if who.function == 0 {
            let by_pattern = self.function_of(who.group);
            return by_pattern.unwrap_or_else(|| program(who));
        }
        let Some((sandbox, has_others)) = roster.sandbox_of(who.function) else {
            return format!("function-{:x}", who.function);
        };
        if let Some(name) = self.function_of(sandbox) {
            return name;
        }
        match self.path(sandbox) {
            Some(path) if has_others => without_number(path).to_owned(),
            Some(path) => path.to_owned(),
            None => format!("cgroup-{sandbox}"),
        }
    }
}

/// Returns the name of the program.
fn program(who: &Who) -> String {
    let end = who.comm.iter().position(|byte| *byte == 0);
    match &who.comm[..end.unwrap_or(who.comm.len())] {
        [] => "unknown".into(),
        name => word(name),
    }
}

/// Returns the path without a number at its end: several sandboxes belong to one function.
fn without_number(path: &str) -> &str {
    let stem = path.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.trim_end_matches(['-', '_', '.', '/']);
    if stem.is_empty() {
        path
    } else {
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::{BY_PROGRAM, NAMED};

    fn who(class: Class, function: u64, group: u64) -> Who {
        Who {
            class,
            function,
            group,
            comm: *b"node\0\0\0\0\0\0\0\0\0\0\0\0",
        }
    }

    fn names(patterns: &[&str]) -> Names {
        let patterns = patterns.iter().map(|it| SandboxPattern::parse(it).unwrap());
        let mut names = Names {
            patterns: patterns.collect(),
            ..Names::default()
        };
        names.add(1, "/fn".into());
        names.add(2, "/fn/resize-1".into());
        names.add(3, "/fn/resize-2".into());
        names.add(4, "/fn/resize-2/worker".into());
        names.add(5, "/system/sshd\n".into());
        names
    }

    #[test]
    fn cgroups_are_found_by_their_ids() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("fn/resize")).unwrap();
        let names = Names::read(folder.path(), &[]);
        let ids: Vec<u64> = names.paths.keys().copied().collect();
        assert_eq!(ids.len(), 2);
        let mut paths: Vec<&str> = ids.iter().filter_map(|id| names.path(*id)).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["fn", "fn/resize"]);
    }

    #[test]
    fn patterns_name_functions() {
        let names = names(&["fn/{function}-*"]);
        assert_eq!(names.function_of(4).unwrap(), "resize");
        assert!(names.is_wanted(2) && !names.is_wanted(1) && !names.is_wanted(99));
        let mut roster = Roster::default();
        let number = roster.number(who(Class::Function, 0, 4));
        assert_eq!(names.runner(&roster, number), "resize");
    }

    #[test]
    fn without_patterns_sandboxes_and_programs_do() {
        let names = names(&[]);
        assert!(names.is_wanted(99));
        let mut roster = Roster::default();
        let named = roster.number(who(Class::Function, NAMED | BY_PROGRAM, 2));
        assert_eq!(names.runner(&roster, named), "fn/resize-1");
        roster.number(who(Class::Function, NAMED | BY_PROGRAM, 3));
        assert_eq!(names.runner(&roster, named), "fn/resize");
        let program = roster.number(who(Class::Function, BY_PROGRAM | 5, 2));
        assert_eq!(names.runner(&roster, program), "node");
        let outside = roster.number(who(Class::Outside, 0, 5));
        assert_eq!(names.runner(&roster, outside), "node");
        let strange = roster.number(who(Class::Function, NAMED | 9, 5));
        assert_eq!(names.runner(&roster, strange), r"system/sshd\n");
    }
}
