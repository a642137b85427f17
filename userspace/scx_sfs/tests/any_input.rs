//! Any input is taken or refused in words: what the fuzz targets check, on random bytes, and
//! on what they have begun with.

mod common;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Checks what is in the folder of a fuzz target's corpus.
fn check_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 3, "{target} begins with {seen} files");
}

#[test]
fn what_the_fuzz_targets_begin_with() {
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
