//! Features of the libraries: `cargo test`, and `make demo`, have the same as `make build`, or one of
//! them compiles nearly all crates of the workspace once more.

use sfs_scripts::top;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The packages with their features, for these kinds of dependencies of what is `chosen`.
fn packages(chosen: &[&str], edges: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .current_dir(top().join("userspace"))
        .args(["tree", "--locked", "--offline"])
        .args(["--prefix", "none", "--format", "{p} {f}", "--edges", edges])
        .args(chosen)
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("names in UTF-8");
    text.lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Asserts that `more` has all of `some`.
fn assert_shared(some: &BTreeSet<String>, more: &BTreeSet<String>) {
    let again: Vec<&String> = some.difference(more).collect();
    assert!(
        some.len() > 100 && again.is_empty(),
        "others have other features than {again:#?}: ask for theirs in userspace/Cargo.toml"
    );
}

#[test]
fn tests_use_the_libraries_of_the_programs() {
    let built = packages(&["--workspace"], "normal,build");
    assert_shared(&built, &packages(&["--workspace"], "normal,build,dev"));
}

#[test]
fn the_demo_uses_the_libraries_of_the_whole_build() {
    let text = fs::read_to_string(top().join("Makefile")).expect("the Makefile");
    let crates = text.lines().find_map(|line| line.strip_prefix("DEMO := "));
    let crates = crates.expect("the crates of the demo").split(' ');
    let chosen: Vec<&str> = crates.flat_map(|name| ["--package", name]).collect();
    let built = packages(&["--workspace"], "normal,build");
    assert_shared(&packages(&chosen, "normal,build"), &built);
}
