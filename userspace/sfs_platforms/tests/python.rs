//! The archive with Python, with a stand-in for Python.

mod common;

use common::Tree;
use sfs_scripts::run;
use std::process::Command;

const ROOT: [&str; 1] = ["python-root"];

/// What tar lists of an archive, a line for each file.
fn listed(archive: &str, options: &[&str]) -> Vec<String> {
    let mut tar = Command::new("tar");
    let said = run(tar.args(options).args(["-f", archive]));
    said.succeeded().lines().map(str::to_owned).collect()
}

/// Owner, group and time of each file in an archive.
fn owners_and_times(archive: &str) -> Vec<String> {
    let lines = listed(archive, &["--utc", "--full-time", "-t", "-v"]).into_iter();
    let fields = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        [words[1], words[3], words[4]].join(" ")
    });
    fields.collect()
}

#[test]
fn the_archive_has_python_with_its_packages_and_libraries() {
    let tree = Tree::new();
    let said = tree.run(&ROOT, &[]);
    assert_eq!(
        said.err,
        "python-root: installing the platforms with pip into the cache\n"
    );
    let archive = said.succeeded().trim_end();
    let folder = format!("{}/.cache/platforms/", tree.top());
    let key = archive
        .strip_prefix(&folder)
        .unwrap()
        .strip_suffix(".tar")
        .unwrap();
    assert!(
        key.len() == 16 && key.bytes().all(|c| c.is_ascii_hexdigit()),
        "{key}"
    );
    let names = listed(archive, &["-t"]);
    for name in [
        "./platform/bin/python3",
        "./platform/lib/python3.99/module.py",
        "./platform/packages/package.py",
    ] {
        assert!(
            names.iter().any(|one| one == name),
            "no {name} in {names:?}"
        );
    }
    assert!(
        names.iter().any(|name| name.ends_with("/libc.so.6")),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.contains("unneeded")),
        "{names:?}"
    );
    let sorted = names.is_sorted_by_key(|name| name.trim_end_matches('/').replace('/', "\0"));
    assert!(sorted, "{names:?}");
    let all = owners_and_times(archive);
    assert!(
        all.iter().all(|one| one == "0/0 2026-01-01 00:00:00"),
        "{all:?}"
    );
    let calls = tree.calls();
    let root = "TOP/.cache/staging/root";
    assert_eq!(
        calls,
        [
            format!("pip -m pip install --quiet --no-deps --only-binary :all: --no-compile --requirement TOP/vm/platforms/requirements.txt --target {root}/platform/packages"),
            format!("compileall -m compileall -q -j 0 --invalidation-mode unchecked-hash -s {root} -p / {root}/platform"),
        ]
    );
}

#[test]
fn it_is_made_once_for_the_same_packages() {
    let tree = Tree::new();
    let first = tree.run(&ROOT, &[]).succeeded().to_owned();
    assert_eq!(tree.calls().len(), 2);
    let said = tree.run(&ROOT, &[]);
    assert_eq!((said.succeeded(), said.err.as_str()), (first.as_str(), ""));
    assert_eq!(tree.calls(), [""; 0]);
    tree.place
        .write("vm/platforms/requirements.txt", "package==2\n");
    let other = tree.run(&ROOT, &[("QUIET", "1")]);
    assert_ne!(other.succeeded(), first);
    assert_eq!(other.err, "");
    assert_eq!(tree.calls().len(), 2);
}

#[test]
fn the_cache_can_be_elsewhere() {
    let tree = Tree::new();
    let said = tree.run(&ROOT, &[("SCX_SFS_CACHE", "elsewhere")]);
    let folder = format!("{}/elsewhere/platforms/", tree.top());
    assert!(said.succeeded().starts_with(&folder), "{said:?}");
}

#[test]
fn without_pip_or_packages_it_says_what_to_do() {
    let tree = Tree::new();
    tree.place.write("no-network", "");
    let said = tree.run(&ROOT, &[]);
    said.ended(125, "no network\n");
    said.ended(
        125,
        "python-root: pip could not install vm/platforms/requirements.txt; look at its message above and run this again\n",
    );
    tree.place.write("no-pip", "");
    tree.run(&ROOT, &[])
        .ended(2, "has no pip; install the package python3-pip\n");
    tree.place.write("elsewhere", "");
    let cache = [("SCX_SFS_CACHE", "elsewhere/cache")];
    tree.place.remove("no-pip");
    tree.run(&ROOT, &cache)
        .ended(125, "set SCX_SFS_CACHE to a writable one");
}

#[test]
fn it_waits_for_others_that_fetch() {
    let tree = Tree::new();
    tree.place.write(".cache/lock", "");
    let lock = std::fs::File::open(tree.place.path(".cache/lock")).unwrap();
    lock.lock().unwrap();
    let said = std::thread::scope(|scope| {
        let run = scope.spawn(|| tree.run(&ROOT, &[]));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let is_waiting = !run.is_finished();
        lock.unlock().unwrap();
        let said = run.join().unwrap();
        assert!(is_waiting, "{said:?}");
        said
    });
    said.ended(0, "another fetch is using");
}
