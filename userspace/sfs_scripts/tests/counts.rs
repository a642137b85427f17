//! How tests are counted: `scripts/cargo-test`, the skips of tests that are scripts, and
//! `.ci/run`.

use sfs_scripts::{run, Place, Said};

#[test]
fn skipped_tests_are_not_counted_as_passed() {
    let place = Place::with(&["scripts/cargo-test", "userspace/Cargo.toml"]);
    // A test that runs twice is skipped once.
    place.script(
        "cargo",
        "printf 'a::b: no root\\na::c: no KVM\\na::b: no root\\n' >>\"$SCX_SFS_SKIPS\"
         echo 'test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'
         echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
         exit 101",
    );
    let mut command = place.command("scripts/cargo-test");
    let said = run(command.env("CARGO", place.path("cargo")).arg("--workspace"));
    said.ended(101, "\nskipped a::c: no KVM\n");
    assert_eq!(said.last_line(), "5 passed, 1 failed, 3 skipped");
}

/// A script with one check and this skip, with `CI` set to `ci`.
fn skipping(ci: &str, name: &str, why: &str) -> Said {
    let place = Place::with(&[
        "scripts/lib/check.sh",
        "scripts/lib/skips.sh",
        "tests/skips",
    ]);
    let line = format!(
        "scripts/own.sh: two: reason\nown::*: a pattern\n{}",
        place.read("tests/skips")
    );
    place.write("tests/skips", &line);
    place.script(
        "scripts/own.sh",
        &format!(
            "source \"${{BASH_SOURCE[0]%/*}}/lib/check.sh\"
             check one true; skip '{name}' '{why}'; conclude_checks"
        ),
    );
    run(place.command("scripts/own.sh").env("CI", ci))
}

#[test]
fn unlisted_skips_of_scripts_fail_with_ci() {
    const SKIPPED: &str = "1 passed, 0 failed, 1 skipped";
    for ci in ["", "0", "false"] {
        let said = skipping(ci, "two", "no reason");
        said.succeeded();
        assert_eq!(said.last_line(), SKIPPED);
    }
    for ci in ["1", "true"] {
        let said = skipping(ci, "two", "reason");
        said.succeeded();
        assert_eq!(said.last_line(), SKIPPED);
        let said = skipping(ci, "two", "no reason");
        said.ended(1, "this is not: scripts/own.sh: two: no reason");
        assert_eq!(said.last_line(), "1 passed, 1 failed, 0 skipped");
    }
}

#[test]
fn the_count_of_ci_is_that_of_all_parts() {
    let place = Place::with(&[".ci/run"]);
    place.script(
        "bin/make",
        "[[ $1 == test ]] || exit 0
         echo 'test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
         echo '3 passed, 0 failed, 2 skipped'
         echo \"CI is $CI\"
         echo '4 passed, 0 failed, 1 skipped'",
    );
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", place.text("bin"));
    let said = run(place.command(".ci/run").env("PATH", path));
    said.ended(0, "CI is 1\n");
    assert_eq!(said.last_line(), "7 passed, 0 failed, 3 skipped");
}
