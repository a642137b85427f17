//! Licences and bills of materials, with a stand-in for the list of crates that cargo prints.

use std::fs;

use sfs_scripts::{find, run, Place, Said};

/// A program, a crate of ours, one of the registry, and a macro.
const CARGO: &str = "echo \"$4 v0.1.0 (/home/me/$4)|GPL-2.0-only\"
echo 'sfs_text v0.1.0 (/home/me/sfs_text)|GPL-2.0-only'
echo 'adler2 v2.0.1|0BSD/MIT'
echo 'paste v1.0.15 (proc-macro)|MIT OR Apache-2.0'";

fn workspace() -> Place {
    let place = Place::new();
    place.write(
        "Cargo.lock",
        "[[package]]\nname = \"adler2\"\nversion = \"2.0.1\"\nchecksum = \"ab12\"\n",
    );
    place.script("cargo", CARGO);
    for (file, text) in [
        ("adler2-2.0.1/LICENSE-MIT", "the text\n"),
        ("adler2-2.0.1/src/licence.rs", "code\n"),
        ("paste-1.0.15/docs/COPYING", "the text\n"),
        ("paste-1.0.15/NOTICE", "a notice\n"),
    ] {
        place.write(&format!("crates/{file}"), text);
    }
    place
}

fn release(place: &Place, arguments: &[&str]) -> Said {
    let mut command = place.command(env!("CARGO_BIN_EXE_sfs_release"));
    command
        .args(["--workspace", &place.text(".")])
        .env("CARGO", place.path("cargo"))
        .env("CARGO_TARGET_DIR", place.path("target"))
        .env("CRATES", place.path("crates"));
    run(command.args(arguments))
}

#[test]
fn bills_name_versions_licences_and_checksums_and_no_folder() {
    let place = workspace();
    release(&place, &["bom"]).succeeded();
    let text = place.read("target/release/faasbench.cdx.json");
    let bill: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let own = &bill["metadata"]["component"];
    assert_eq!(
        (&own["type"], &own["name"]),
        (&"application".into(), &"faasbench".into())
    );
    let libraries = bill["components"].as_array().unwrap();
    let names: Vec<_> = libraries
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["adler2", "paste", "sfs_text"]);
    let adler = &libraries[0];
    assert_eq!(adler["licenses"][0]["expression"], "0BSD OR MIT");
    assert_eq!(adler["purl"], "pkg:cargo/adler2@2.0.1");
    assert_eq!(adler["hashes"][0]["content"], "ab12");
    assert!(libraries[1]["purl"].is_null(), "{text}");
    assert!(!text.contains("home/me"), "{text}");
}

#[test]
fn each_licence_text_is_there_once() {
    let place = workspace();
    release(&place, &["licences", "--write"]).succeeded();
    let text = place.read("target/release/licences.txt");
    assert!(
        text.contains(
            "\nadler2 2.0.1: 0BSD/MIT; text 1\npaste 1.0.15: MIT OR Apache-2.0; text 2 1\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches("\nthe text\n").count(), 1, "{text}");
    assert!(
        text.contains("Text 2 (NOTICE of paste)\n\na notice\n"),
        "{text}"
    );
    assert!(
        !text.contains("sfs_text") && !text.contains("code"),
        "{text}"
    );
}

#[test]
fn what_is_current_is_not_written_again() {
    let place = workspace();
    for arguments in [&["licences", "--write"][..], &["bom"]] {
        release(&place, arguments).succeeded();
    }
    place.script("cargo", "exit 1");
    for arguments in [&["licences", "--write"][..], &["bom"]] {
        release(&place, arguments).succeeded();
    }
    release(&place, &["licences"]).ended(1, "cargo tree failed");
}

#[test]
fn a_crate_that_is_not_there_is_named() {
    let place = workspace();
    std::fs::remove_dir_all(place.path("crates/paste-1.0.15")).unwrap();
    release(&place, &["licences", "--write"])
        .ended(1, "paste 1.0.15 is not where cargo unpacks crates");
    assert!(!place.path("target/release/licences.txt").exists());
}

/// All files of a folder below `out`, by name, with their bytes.
fn files(place: &Place, folder: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(place.path(folder)).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_release_of_a_commit_is_the_same_each_time() {
    let place = workspace();
    for file in ["adler2-2.0.1/LICENSE-MIT", "paste-1.0.15/NOTICE"] {
        place.write(&format!("home/registry/src/some/{file}"), "the text\n");
    }
    for line in [
        "init --quiet",
        "add Cargo.lock",
        "-c user.name=N -c user.email=n@example.org commit --quiet --message first",
    ] {
        let mut git = place.command(find("git").unwrap().to_str().unwrap());
        run(git.current_dir(place.path(".")).args(line.split(' '))).succeeded();
    }
    let released = ["one", "two"].map(|to| {
        // Times of files differ by more than a second, which is what an archive keeps.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let mut dist = place.command(env!("CARGO_BIN_EXE_sfs_release"));
        dist.env("CARGO", place.path("cargo"))
            .env("CARGO_HOME", place.path("home"));
        dist.args(["--workspace", &place.text("."), "dist", "--to"]);
        let said = run(dist.arg(place.path(to)));
        let folder = said.succeeded().trim_end().to_owned();
        let mut sums = place.command(find("sha256sum").unwrap().to_str().unwrap());
        sums.current_dir(&folder);
        run(sums.args(["--check", "--strict", "SHA256SUMS"])).succeeded();
        let name = folder.rsplit('/').next().unwrap();
        files(&place, &format!("{to}/{name}"))
    });
    let names: Vec<&str> = released[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(released[0] == released[1], "they differ");
}
