//! What is made for the real program.

use std::fs;
use std::path::Path;

use scx_sfs::config::{keys, Request};
use sfs_generate::into;
use tempfile::TempDir;

/// A folder with everything that is made for scx_sfs.
fn made() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    into(folder.path(), &scx_sfs::generate::program()).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_command_has_a_page_and_each_option_is_on_one() {
    let folder = made();
    let pages = folder.path().join("man/man8");
    let commands = [
        "",
        "-advise",
        "-check",
        "-config",
        "-explain",
        "-functions",
        "-hint",
        "-reload",
        "-set",
        "-top",
        "-trace",
    ];
    let mut want = commands.map(|command| format!("scx_sfs{command}.8"));
    want.sort();
    assert_eq!(names(&pages), want);
    let text = fs::read_to_string(pages.join("scx_sfs.8")).unwrap();
    let text = text.replace("\\-", "-");
    for arg in keys::keys(&keys::command()) {
        let option = format!("--{}", arg.get_long().unwrap());
        assert!(text.contains(&option), "{option}");
    }
    assert!(
        text.contains("another sched_ext scheduler is loaded"),
        "{text}"
    );
}

#[test]
fn everything_is_at_its_place() {
    let folder = made();
    for place in [
        "man/man8/scx_sfs.8",
        "man/man8/scx_sfs-check.8",
        "bash-completion/completions/scx_sfs",
        "zsh/site-functions/_scx_sfs",
        "fish/vendor_completions.d/scx_sfs.fish",
        "doc/scx_sfs/examples/config.toml",
        "doc/scx_sfs/options.md",
    ] {
        let text = fs::read_to_string(folder.path().join(place)).unwrap();
        let text = text.replace("\\-", "-");
        assert!(
            text.contains("slice-us") || place.contains("check"),
            "{place}"
        );
    }
    let file = folder.path().join("man/man8/scx_sfs.8");
    let said = into(&file, &scx_sfs::generate::program()).unwrap_err();
    assert!(said.to_string().starts_with("cannot write "), "{said}");
}

/// The page in the repository is what `scx_sfs generate` writes. With WRITE=1 it becomes so.
#[test]
fn the_page_of_options_is_up_to_date() {
    let made = sfs_generate::options(&scx_sfs::generate::program());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let command = "cargo test --release -p sfs_generate --test files";
    sfs_generate::markdown::keep(&page, &made, command).unwrap();
    for arg in keys::keys(&keys::command()) {
        let option = format!("--{}", arg.get_long().unwrap());
        assert!(made.contains(&option), "{option}");
    }
}

/// An example is a valid configuration on its own.
#[test]
fn examples_are_accepted() {
    let folder = made();
    let examples = folder.path().join("doc/scx_sfs/examples");
    let platforms = sfs_check::PLATFORMS;
    assert_eq!(names(&examples).len(), platforms.len() + 1);
    for platform in platforms {
        let request = Request::read(["scx_sfs"], &examples.join(platform.example));
        let Ok(Request::Schedule(configuration)) = request else {
            panic!("{}: {request:?}", platform.name);
        };
        let patterns = configuration.options().cgroup.len();
        assert_eq!(patterns, platform.cgroups.len(), "{}", platform.name);
    }
}
