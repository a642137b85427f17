//! How tests are counted: `scripts/cargo-test` and `.ci/run`.

use sfs_scripts::{run, Place};

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

#[test]
fn a_finding_in_the_model_fails_ci() {
    let place = Place::with(&[".ci/run"]);
    place.script(
        "bin/make",
        "case $1 in
             test) echo '4 passed, 0 failed, 1 skipped' ;;
             simulate) echo \"searches: $*\"; exit 2 ;;
             test-fresh) echo '9 passed, 0 failed, 0 skipped' ;;
         esac",
    );
    place.script("bin/git", "echo 000000ff1234");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", place.text("bin"));
    let mut command = place.command(".ci/run");
    let said = run(command.env("PATH", &path).env("SEED", "77"));
    said.ended(1, "\nsearches: simulate SECONDS=300 SEED=77\n");
    assert_eq!(said.last_line(), "13 passed, 0 failed, 1 skipped");
    // Without a seed it takes those of the commit; without a repository, those of the time.
    let mut command = place.command(".ci/run");
    let said = run(command.env("PATH", &path).env_remove("SEED"));
    said.ended(1, "make simulate SECONDS=300 SEED=255000\n");
    place.script("bin/git", "exit 128");
    let mut command = place.command(".ci/run");
    let said = run(command.env("PATH", &path).env_remove("SEED"));
    said.ended(1, "make simulate SECONDS=300 SEED=1");
    assert_eq!(said.last_line(), "13 passed, 0 failed, 1 skipped");
}
