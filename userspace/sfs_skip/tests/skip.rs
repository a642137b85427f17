//! A test that skips itself, as seen by the harness and scripts.

use std::process::{Command, Output};

use sfs_skip::{skip, RECORD};

/// Set in the process in which this test skips itself.
const TRY: &str = "SFS_SKIP_TRY";

/// Runs this test in another process, in which it skips itself. Returns the
/// output and the record.
fn run(ci: &str) -> (Output, String) {
    let place = tempfile::tempdir().unwrap();
    let record = place.path().join("skips");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_skip_is_counted_and_with_ci_must_be_listed"])
        .env(TRY, "1")
        .env("CI", ci)
        .env(RECORD, &record)
        .output()
        .unwrap();
    (output, std::fs::read_to_string(record).unwrap_or_default())
}

#[test]
fn a_skip_is_counted_and_with_ci_must_be_listed() {
    const SKIP: &str =
        "sfs_skip::skip::a_skip_is_counted_and_with_ci_must_be_listed: it was asked to";
    if std::env::var_os(TRY).is_some() {
        skip!("it was asked to");
    }
    let (output, record) = run("");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("skipped {SKIP}")), "{said}");
    assert_eq!(record, format!("{SKIP}\n"));

    let (output, record) = run("1");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(&format!("this is not: {SKIP}")), "{said}");
    assert_eq!(record, "");
}
