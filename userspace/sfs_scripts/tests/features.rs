//! Units of compilation: `cargo test`, and `make demo`, have those of `make build`, or one of them
//! compiles crates once more, and the programs of `make demo` are others, byte for byte.

use serde_json::Value;
use sfs_scripts::top;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// What cargo compiles for a command: package, target, features and profile of each unit. Crates
/// for programs and those for build scripts are told apart, which `cargo tree` does not do.
fn units(command: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .current_dir(top().join("userspace"))
        .args(command)
        .args(["--release", "--locked", "--offline"])
        .args(["--unit-graph", "-Z", "unstable-options"])
        // A stable cargo prints it as well, if it is told so.
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let graph: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let units = graph["units"].as_array().expect("units").iter();
    units.filter(|unit| is_shared(unit)).map(name).collect()
}

/// A library: programs and tests belong to one command only.
fn is_shared(unit: &Value) -> bool {
    let kinds = &unit["target"]["kind"];
    unit["mode"] == "build" && (kinds[0] == "lib" || kinds[0] == "proc-macro")
}

fn name(unit: &Value) -> String {
    let id = unit["pkg_id"].as_str().expect("a package");
    let package = id.rsplit('/').next().unwrap_or(id);
    let profile = &unit["profile"];
    format!(
        "{package}: features {}, optimisation {}",
        unit["features"], profile["opt_level"]
    )
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
    let built = units(&["build", "--workspace"]);
    assert_shared(&built, &units(&["test", "--no-run", "--workspace"]));
}

#[test]
fn the_demo_uses_the_libraries_of_the_whole_build() {
    let text = fs::read_to_string(top().join("Makefile")).expect("the Makefile");
    let crates = text.lines().find_map(|line| line.strip_prefix("DEMO := "));
    let crates = crates.expect("the crates of the demo").split(' ');
    let chosen = crates.flat_map(|name| ["--package", name]);
    let demo: Vec<&str> = std::iter::once("build").chain(chosen).collect();
    assert_shared(&units(&demo), &units(&["build", "--workspace"]));
}
