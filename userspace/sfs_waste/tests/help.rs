//! The program's help, and what it does with wrong options.

use std::process::{Command, Output};

fn run(options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_waste"));
    command.args(options).output().expect("it runs")
}

#[test]
fn the_help_fits_80_columns_and_has_examples_and_exit_statuses() {
    for option in ["-h", "--help"] {
        let output = run(&[option]);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("Examples, as root:\n"), "{text}");
        assert!(text.contains("Exit status: "), "{text}");
    }
}

#[test]
fn wrong_options_are_status_2_and_one_sentence() {
    let output = run(&["--for", "-1"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.starts_with("error: "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}
