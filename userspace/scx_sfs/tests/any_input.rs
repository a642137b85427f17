//! Any input is accepted or refused with a message: the checks of the fuzz
//! targets, on random bytes and on their seeds.

mod common;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Checks the seeds of a fuzz target.
fn check_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 3, "{target} has {seen} seeds");
}

#[test]
fn seeds_of_the_fuzz_targets() {
    check_corpus("exit_text", common::check_exit_text);
    check_corpus("statistics", common::check_statistics);
    check_corpus("options", common::check_options);
    check_corpus("pattern", common::check_pattern);
    check_corpus("history", common::check_history);
}

#[test]
fn requests_of_any_length() {
    for length in [0, 1, 4094, 4095, 4096, 4097, 8192, 10_000] {
        for end in ["", "\n", "\n\n", "\n{}"] {
            common::check_statistics(format!("{}{end}", "x".repeat(length)).as_bytes());
        }
    }
}

proptest! {
    #[test]
    fn any_exit_text(bytes: Vec<u8>) {
        common::check_exit_text(&bytes);
    }

    #[test]
    fn any_statistics(bytes: Vec<u8>) {
        common::check_statistics(&bytes);
    }

    #[test]
    fn any_arguments(bytes: Vec<u8>) {
        common::check_options(&bytes);
    }

    #[test]
    fn any_pattern(pattern in "[a-c*?{}\\[\\]!/-]{0,12}|\\PC{0,12}", path in "[a-c/0-2-]{0,12}") {
        common::check_pattern(format!("{pattern}\n{path}").as_bytes());
    }
}
