//! What `cargo install scx_sfs` needs of this workspace can be published: `make package-crates`
//! packages and builds it, which takes minutes.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use sfs_scripts::{find, run, top};

/// The output of cargo, which needs no network for this.
fn cargo(arguments: &str) -> String {
    let mut cargo = Command::new(find("cargo").unwrap());
    cargo.current_dir(top().join("userspace"));
    cargo.args(arguments.split(' ')).arg("--offline");
    run(&mut cargo).succeeded().to_owned()
}

#[test]
fn each_crate_that_is_needed_may_be_published() {
    let tree = cargo("tree --locked -p scx_sfs -e normal,build --prefix none --format {p}");
    let own = tree.lines().filter(|line| line.contains(" (/"));
    let own: BTreeSet<&str> = own.filter_map(|line| line.split(' ').next()).collect();
    assert!(own.contains("sfs_bpf") && own.len() >= 10, "{own:?}");
    let metadata = cargo("metadata --locked --no-deps --format-version 1");
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if !own.contains(name) {
            continue;
        }
        assert!(package["publish"].is_null(), "{name} is not published");
        for key in ["description", "license"] {
            assert!(package[key].is_string(), "{name} has no {key}");
        }
        // What has a version in the manifest must be there for those who install it.
        for needed in package["dependencies"].as_array().unwrap() {
            let (path, version) = (&needed["path"], needed["req"].as_str().unwrap());
            if path.is_string() && version != "*" {
                let needed = needed["name"].as_str().unwrap();
                assert!(own.contains(needed), "{name} needs {needed}");
            }
        }
    }
}

#[test]
fn the_kernel_half_comes_along() {
    let listed = cargo("package --list --allow-dirty -p sfs_bpf");
    let files: BTreeSet<&str> = listed.lines().collect();
    let sources = fs::read_dir(top().join("scheds/sfs_bpf")).unwrap();
    let mut count = 0;
    for source in sources {
        let name = source.unwrap().file_name().into_string().unwrap();
        let file = format!("kernel_half/{name}");
        assert!(files.contains(file.as_str()), "{file}: {listed}");
        count += 1;
    }
    assert!(count > 20, "only {count} sources");
    for file in ["LICENSE", "build.rs", "build/neutral.rs"] {
        assert!(files.contains(file), "{file}: {listed}");
    }
}
