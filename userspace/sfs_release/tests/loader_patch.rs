//! packaging/scx_loader.patch on the published crate scx_loader, which cargo fetches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sfs_scripts::{find, run, top, Place};
use sfs_skip::skip;

/// The version that the patch names.
const VERSION: &str = "1.1.3";
const CANNOT: &str = "the crate scx_loader is not to be had";

/// It builds some hundred libraries of others, so `make test-package` asks for it.
const ASKED: &str = "TRY_SCX_LOADER";

/// With the patch, each of these is true.
const TEST: &str = r#"
use scx_loader::{config, SchedMode, SupportedSched};

#[test]
fn scx_sfs_is_a_scheduler_without_options_of_its_own() {
    let sfs: SupportedSched = "scx_sfs".parse().unwrap();
    let name: &str = sfs.clone().into();
    assert_eq!(name, "scx_sfs");
    let delivered = config::parse_config_file("default_config.toml").unwrap();
    for config in [config::get_default_config(), delivered] {
        let flags = config::get_scx_flags_for_mode(&config, &sfs, SchedMode::Server);
        assert!(flags.is_empty(), "{flags:?}");
        assert!(config.scheds.contains_key("scx_sfs"));
    }
}
"#;

/// The folder of the crate as cargo has unpacked it, or None without a network.
fn published(place: &Place) -> Option<PathBuf> {
    let manifest = format!(
        "[package]\nname = \"fetches\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [dependencies]\nscx_loader = \"={VERSION}\"\n\n[workspace]\n"
    );
    place.write("fetches/Cargo.toml", &manifest);
    place.write("fetches/src/lib.rs", "");
    let mut metadata = cargo(&place.path("fetches"));
    let output = metadata
        .args(["metadata", "--format-version", "1"])
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = listed["packages"].as_array().unwrap();
    let it = packages.iter().find(|one| one["name"] == "scx_loader");
    let manifest = it.unwrap()["manifest_path"].as_str().unwrap();
    Path::new(manifest).parent().map(Path::to_owned)
}

fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(find("cargo").unwrap());
    command.current_dir(folder);
    command
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn it_applies_builds_and_passes_the_tests_of_scx_loader() {
    let patch = top().join("packaging/scx_loader.patch");
    let text = fs::read_to_string(&patch).unwrap();
    assert!(text.contains(&format!("Made against scx_loader {VERSION}.")));
    if std::env::var_os(ASKED).is_none() {
        skip!("make test-package tries the patch of scx_loader");
    }
    let place = Place::new();
    let (Some(unpacked), Some(_)) = (published(&place), find("patch")) else {
        skip!(CANNOT);
    };
    let folder = place.path("scx_loader");
    copy(&unpacked, &folder);
    let mut apply = Command::new("patch");
    apply
        .current_dir(&folder)
        .args(["-p1", "--fuzz=0", "--input"]);
    run(apply.arg(&patch)).succeeded();
    place.write("scx_loader/tests/sfs.rs", TEST);
    // Kept, since scx_loader has many dependencies.
    let target = top().join("userspace/target/scx_loader");
    let mut test = cargo(&folder);
    test.args(["test", "--quiet", "--locked", "--target-dir"]);
    let said = run(test.arg(target));
    let passed = said.succeeded().matches("test result: ok").count();
    assert!(passed >= 3, "{said:?}");
}
