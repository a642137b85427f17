//! Features of the libraries: `cargo test` has the same as `cargo build`, or it compiles nearly all
//! crates of the workspace once more.

use sfs_scripts::top;
use std::collections::BTreeSet;
use std::process::Command;

/// The packages with their features, for these kinds of dependencies.
fn packages(edges: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let output = Command::new(cargo)
        .current_dir(top().join("userspace"))
        .args(["tree", "--workspace", "--locked", "--offline"])
        .args(["--prefix", "none", "--format", "{p} {f}", "--edges", edges])
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

#[test]
fn tests_use_the_libraries_of_the_programs() {
    let (built, tested) = (packages("normal,build"), packages("normal,build,dev"));
    let again: Vec<&String> = built.difference(&tested).collect();
    assert!(
        built.len() > 100 && again.is_empty(),
        "the tests have other features than {again:#?}: ask for those of the tests in \
         userspace/Cargo.toml"
    );
}
