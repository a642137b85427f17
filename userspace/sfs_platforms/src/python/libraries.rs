//! The shared libraries that the binaries below a folder name, outside of it.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of one call of a tool, so that its command line does not become too long.
pub const FILES_AT_ONCE: usize = 500;

/// The owner may execute it.
const EXECUTABLE: u32 = 0o100;

/// The libraries that the binaries below `root` need and that are not there, as `ldd` says.
///
/// # Errors
/// If a folder cannot be read, or `ldd` not run.
pub fn needed(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let binaries = files(root, |name, mode| {
        is_library(name) || mode & EXECUTABLE != 0
    })?;
    let mut found = BTreeSet::new();
    for some in binaries.chunks(FILES_AT_ONCE) {
        // It fails on files that are not dynamic binaries, which is fine.
        let mut ldd = Command::new("ldd");
        let ldd = ldd.args(some).stdin(Stdio::null()).stderr(Stdio::null());
        let output = ldd.output().context("cannot run ldd")?;
        let text = String::from_utf8_lossy(&output.stdout);
        found.extend(text.lines().filter_map(library).map(PathBuf::from));
    }
    found.retain(|library| !library.starts_with(root));
    Ok(found)
}

/// The library that a line of `ldd` names: `libc.so.6 => /lib/libc.so.6 (0x0)`, or
/// `/lib64/ld-linux-x86-64.so.2 (0x0)`.
fn library(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" (0x")?;
    let word = before.rsplit([' ', '\t', ':']).next()?;
    word.starts_with('/').then_some(word)
}

/// Whether a file of this name is a shared library.
pub fn is_library(name: &str) -> bool {
    name.contains(".so")
}

/// The regular files below `folder` whose names and modes are wanted.
///
/// # Errors
/// If a folder cannot be read.
pub fn files(folder: &Path, is_wanted: fn(&str, u32) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let cannot = || format!("cannot read {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            // Of the entry itself, not of what a link leads to.
            let data = entry.metadata().with_context(cannot)?;
            let name = entry.file_name();
            if data.is_dir() {
                folders.push(entry.path());
            } else if data.is_file()
                && is_wanted(&name.to_string_lossy(), data.permissions().mode())
            {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn lines_of_ldd_are_read() {
        for (line, expected) in [
            (
                "\tlibc.so.6 => /lib/libc.so.6 (0x00007f)",
                Some("/lib/libc.so.6"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("\tlinux-vdso.so.1 (0x00007ffd)", None),
            ("\tlibnone.so => not found", None),
            ("/usr/bin/env:", None),
            ("\tstatically linked", None),
        ] {
            assert_eq!(library(line), expected, "{line}");
        }
    }

    #[test]
    fn libraries_outside_of_the_folder_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("below")).unwrap();
        assert_eq!(needed(&root).unwrap(), BTreeSet::new());
        fs::copy("/bin/sh", root.join("below/program")).unwrap();
        fs::write(root.join("text.so"), "text").unwrap();
        let found = needed(&root).unwrap();
        assert!(
            found.iter().any(|path| path.ends_with("libc.so.6")),
            "{found:?}"
        );
        assert!(needed(Path::new("/none")).is_err());
    }

    #[test]
    fn links_are_not_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a.so.1"), "").unwrap();
        fs::write(root.join("b"), "").unwrap();
        symlink("a.so.1", root.join("a.so")).unwrap();
        symlink(".", root.join("loop.so")).unwrap();
        let found = files(root, |name, _| is_library(name)).unwrap();
        assert_eq!(found, [root.join("a.so.1")]);
    }
}
