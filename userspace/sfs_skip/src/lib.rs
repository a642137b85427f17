//! Skipping of tests that this machine cannot run because a tool, a file or a
//! right is missing. Such a test returns early, and Rust's test harness counts
//! it as passed. With this crate it is counted as skipped: [`skip!`] writes a
//! line to the file that the environment variable [`RECORD`] names, and
//! `scripts/cargo-test` subtracts those lines from the passed tests.
//!
//! With `CI` set (to anything but an empty string, `0` or `false`) a skip fails
//! unless the list `tests/skips` has it. Programs that test, and count by
//! themselves, ask [`check`].
//!
//! ```no_run
//! # use sfs_skip::skip;
//! fn a_file_is_given_away() {
//!     if !is_root() {
//!         skip!("only root can give files away");
//!     }
//! }
//! # fn is_root() -> bool { false }
//! ```

use std::fs::OpenOptions;
use std::io::{self, Write};

use glob::Pattern;

/// The skips that are allowed with `CI` set, one per line; see the comment in
/// the file.
const LIST: &str = include_str!("../../../tests/skips");

/// The environment variable that names the file in which skips are recorded,
/// one per line.
pub const RECORD: &str = "SCX_SFS_SKIPS";

/// Skips the calling test by returning from it. The reason must be a constant,
/// so that the list can contain it.
///
/// # Panics
///
/// With `CI` set, if the skip is not on the list.
#[macro_export]
macro_rules! skip {
    ($why:expr) => {{
        fn here() {}
        let test = $crate::name(env!("CARGO_PKG_NAME"), ::std::any::type_name_of_val(&here));
        $crate::record(&test, $why);
        return;
    }};
}

/// Returns the name of a test of `package` in the list, given the path of a
/// function `here` inside it.
#[must_use]
pub fn name(package: &str, here: &str) -> String {
    let path = here.strip_suffix("::here").unwrap_or(here);
    let path = path.split("::{{closure}}").next().unwrap_or(path);
    let package = package.replace('-', "_");
    match path.split_once("::") {
        Some((first, _)) if first == package => path.to_owned(),
        // An integration test in tests/.
        _ => format!("{package}::{path}"),
    }
}

/// Prints and records that `test` is skipped because of `why`.
///
/// # Panics
///
/// As [`skip!`]; also if it cannot be recorded.
pub fn record(test: &str, why: &str) {
    if let Err(sentence) = check(test, why) {
        panic!("{sentence}");
    }
    // Not by a macro: the harness would capture it.
    let _ = writeln!(io::stderr(), "skipped {test}: {why}");
    if let Some(file) = std::env::var_os(RECORD) {
        let line = format!("{test}: {why}\n");
        let opened = OpenOptions::new().append(true).create(true).open(&file);
        // In one write, since other tests write at the same time.
        let written = opened.and_then(|mut out| out.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot record a skip in {file:?}: {error}"));
    }
}

/// Checks that `test` may be skipped because of `why`: with `CI` set, the list
/// must have it.
///
/// # Errors
///
/// It may not be skipped: one sentence.
pub fn check(test: &str, why: &str) -> Result<(), String> {
    let ci = std::env::var("CI").unwrap_or_default();
    judge(&ci, LIST, test, why)
}

fn judge(ci: &str, list: &str, test: &str, why: &str) -> Result<(), String> {
    let skip = format!("{test}: {why}");
    if matches!(ci, "" | "0" | "false") || is_listed(list, &skip) {
        return Ok(());
    }
    Err(format!(
        "with CI set only tests on the list tests/skips may be skipped, and this is not: {skip}"
    ))
}

fn is_listed(list: &str, skip: &str) -> bool {
    let lines = list.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .any(|line| Pattern::new(line).is_ok_and(|line| line.matches(skip)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "# Comment.\n\na::b: no KVM\nbehaviour::*: it takes two CPUs\n";

    #[test]
    fn only_what_is_listed_may_be_skipped_with_ci() {
        for ci in ["1", "true", "yes"] {
            assert_eq!(judge(ci, SOME, "a::b", "no KVM"), Ok(()));
            assert_eq!(judge(ci, SOME, "behaviour::x", "it takes two CPUs"), Ok(()));
            for (test, why) in [
                ("a::b", "no root"),
                ("a::b", "no KVM at all"),
                ("a::c", "no KVM"),
                ("c::a::b", "no KVM"),
                ("# Comment.", ""),
            ] {
                let sentence = judge(ci, SOME, test, why).unwrap_err();
                assert!(sentence.ends_with(&format!("{test}: {why}")), "{sentence}");
            }
        }
    }

    #[test]
    fn without_ci_any_test_may_be_skipped() {
        for ci in ["", "0", "false"] {
            assert_eq!(judge(ci, SOME, "a::c", "no KVM"), Ok(()));
        }
    }

    #[test]
    fn each_line_of_the_list_is_a_name_and_a_reason() {
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, why) = line.split_once(": ").expect(line);
            assert!(!name.is_empty() && !why.is_empty(), "{line}");
            assert!(Pattern::new(line).is_ok(), "{line}");
            assert!(!why.contains('*'), "{line}: the reason must be complete");
        }
    }

    #[test]
    fn tests_are_named_by_their_paths() {
        for (package, here, want) in [
            (
                "faasbench",
                "faasbench::convert::tests::x::here",
                "faasbench::convert::tests::x",
            ),
            ("faasbench", "cli::x::here", "faasbench::cli::x"),
            (
                "sfs-x",
                "full_disk::x::{{closure}}::here",
                "sfs_x::full_disk::x",
            ),
        ] {
            assert_eq!(name(package, here), want);
        }
    }
}
