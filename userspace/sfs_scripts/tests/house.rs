//! The layout's rules: sizes of crates and files, and the table of crates in ARCHITECTURE.md.

use sfs_scripts::top;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of Rust in a crate.
const CRATE: usize = 6_000;
/// Lines of a file, but for the main one of the kernel half.
const FILE: usize = 500;
/// Lines of shell in all.
const SHELL: usize = 2_500;
const MAIN: &str = "scheds/sfs_bpf/sfs.bpf.c";

/// Files below `folder`, without what builds leave there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let kept = entries.filter(|entry| {
        let name = entry.file_name();
        !["target", ".git", ".cache"]
            .iter()
            .any(|&left| name == *left)
    });
    kept.flat_map(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => files(&entry.path()),
        kind if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    })
    .collect()
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension()
        .is_some_and(|found| suffixes.iter().any(|&suffix| found == suffix))
}

/// The crates, by name.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(top().join("userspace")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let crates = folders.filter(|path| path.join("Cargo.toml").is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    crates.map(|path| (name(&path), path)).collect()
}

#[test]
fn no_crate_is_too_large() {
    for (name, folder) in crates() {
        let files = files(&folder);
        let rust = files.iter().filter(|path| has_suffix(path, &["rs"]));
        let sum: usize = rust.map(|path| lines(path)).sum();
        assert!(sum > 0 && sum <= CRATE, "{name} has {sum} lines of Rust");
    }
}

#[test]
fn no_file_is_too_large() {
    let sources = ["userspace", "scheds"].map(|folder| files(&top().join(folder)));
    let sources = sources.concat();
    let code = sources.iter().filter(|p| has_suffix(p, &["rs", "c", "h"]));
    for path in code.filter(|path| !path.ends_with(MAIN)) {
        let lines = lines(path);
        assert!(lines <= FILE, "{} has {lines} lines", path.display());
    }
}

#[test]
fn shell_stays_where_it_is_right() {
    let is_shell = |path: &PathBuf| {
        let text = fs::read(path).unwrap();
        let first = text.split(|&byte| byte == b'\n').next().unwrap();
        first.starts_with(b"#!") && first.ends_with(b"sh")
    };
    let all = files(&top());
    let sum: usize = all
        .iter()
        .filter(|path| is_shell(path))
        .map(|p| lines(p))
        .sum();
    assert!(sum > 0 && sum <= SHELL, "{sum} lines of shell");
}

/// The crates of the workspace that a crate depends on, tests aside.
fn dependencies(folder: &Path, all: &BTreeMap<String, PathBuf>) -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let lines = manifest
        .lines()
        .skip_while(|&line| line != "[dependencies]");
    let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    let ours = names.filter(|&name| all.contains_key(name));
    ours.map(str::to_owned).collect()
}

/// What a cell names: words in backquotes, `*` for any part of a name.
fn named(cell: &str, all: &BTreeMap<String, PathBuf>) -> BTreeSet<String> {
    let words = cell.split('`').skip(1).step_by(2);
    words
        .flat_map(|word| match word.split_once('*') {
            None => vec![word.to_owned()],
            Some((from, to)) => {
                let fits = |name: &&String| name.starts_with(from) && name.ends_with(to);
                all.keys().filter(fits).cloned().collect()
            }
        })
        .collect()
}

#[test]
fn the_table_of_crates_is_that_of_the_manifests() {
    let text = fs::read_to_string(top().join("ARCHITECTURE.md")).unwrap();
    let rows = text
        .lines()
        .skip_while(|&line| line != "| crate | purpose | uses |");
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let all = crates();
    let mut listed = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].trim_matches('`').to_owned();
        let folder = all.get(&name).unwrap_or_else(|| panic!("no crate {name}"));
        assert_eq!(named(cells[2], &all), dependencies(folder, &all), "{name}");
        listed.insert(name);
    }
    assert_eq!(listed, all.into_keys().collect());
}

/// The files that belong to the target whose root is `root`.
fn files_of_target(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(root).unwrap();
    let modules = text.lines().filter_map(|line| {
        let name = line
            .trim()
            .trim_start_matches("pub ")
            .strip_prefix("mod ")?;
        name.strip_suffix(';').map(str::to_owned)
    });
    let folder = root.parent().unwrap();
    let mut found = vec![root.to_owned()];
    for name in modules {
        found.push(folder.join(format!("{name}.rs")));
        if folder.join(&name).is_dir() {
            found.extend(files(&folder.join(&name)));
        }
    }
    found.retain(|path| path.is_file());
    found
}

#[test]
fn targets_that_are_not_tested_have_no_unit_tests() {
    for (name, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for section in manifest.split("\n[") {
            let root = match section.split_once(']').map(|(title, _)| title) {
                Some("lib") => "src/lib.rs",
                Some("[bin") => "src/main.rs",
                _ => continue,
            };
            if !section.contains("\ntest = false") {
                continue;
            }
            for path in files_of_target(&folder.join(root)) {
                let text = fs::read_to_string(&path).unwrap();
                let has_tests = text.lines().any(|line| line.trim() == "#[test]");
                assert!(!has_tests, "{name}: {} is never tested", path.display());
            }
        }
    }
}
