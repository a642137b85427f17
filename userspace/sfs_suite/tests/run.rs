//! What `sfs_suite run` does with guests that run, fail and are interrupted: with stand-ins
//! for vm/run and sfs_behaviour. `perturb.rs` has more.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Twelve plain cases, and one with a disk.
const BEHAVIOUR: &str = "#!/bin/bash
[[ $* != *nosuch* ]] || { echo 'Bail out! there is no case \"nosuch\"'; exit 1; }
case $* in
'--list --apart disk') echo 'disk_x  about' ;;
'--list --apart '*) ;;
*) printf '%s  about\\n' a b c d e f g h i j k l disk_x ;;
esac
";

/// Says what it was called with. Two cases pass in each guest; `hang` does not end.
const VM: &str = "#!/bin/bash
echo \"$*\" >>\"$OUT/calls\"
[[ $* != *hang ]] || { echo $$ >\"$OUT/pid.new\"; mv \"$OUT/pid.new\" \"$OUT/pid\"; sleep 60; }
echo 'ok 1 - a # about'
echo '#   1.0 s'
echo '2 passed, 0 failed, 1 skipped'
";

fn tree() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("vm/run", VM),
        ("userspace/target/release/sfs_behaviour", BEHAVIOUR),
        ("userspace/target/release/scx_sfs", ""),
    ] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    tree
}

fn suite(tree: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_suite"));
    command
        .arg("--tree")
        .arg(tree)
        .arg("run")
        .args(arguments)
        .env("OUT", tree)
        .env("CI", "1");
    command
}

#[test]
fn cases_are_divided_and_counts_add_up() {
    let tree = tree();
    let arguments = ["--jobs", "2", "--with", "--filter-shards 2", "--cpus", "8"];
    let output = suite(tree.path(), &arguments).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    assert!(out.ends_with("\n6 passed, 0 failed, 3 skipped\n"), "{out}");
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    let mut calls: Vec<&str> = calls.lines().collect();
    calls.sort_by_key(|call| call.split(" -- ").nth(1));
    let words: Vec<_> = calls
        .iter()
        .filter_map(|call| call.split(" -- ").nth(1))
        .collect();
    assert_eq!(
        words,
        [
            "sfs_behaviour --apart disk",
            "sfs_behaviour --part 1/2",
            "sfs_behaviour --part 2/2"
        ]
    );
    let machine = " --cpus 8 --env SFS_BEHAVIOUR_WITH=--filter-shards 2 ";
    assert!(calls[1].contains(machine), "{}", calls[1]);
    assert!(calls[0].contains(" --disk 256M "), "{}", calls[0]);
    assert!(calls[1].contains(" --env CI=1 "), "{}", calls[1]);
}

#[test]
fn long_cases_take_turns() {
    let tree = tree();
    fs::create_dir_all(tree.path().join("tests")).unwrap();
    fs::write(tree.path().join("tests/long"), "disk_x: 9\nb: 8\n").unwrap();
    let output = suite(tree.path(), &["--long", "2/2", "--jobs", "2"])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    assert!(out.starts_with("# 1 cases of tests/long are in other parts\n"));
    let calls = fs::read_to_string(tree.path().join("calls")).unwrap();
    assert!(calls.contains("/2 a b c d e f g h i j k l\n"), "{calls}");
}

/// The list in the repository has cases only.
#[test]
fn the_list_of_long_cases_is_right() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(top.join("tests/long")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with("//"));
    let seconds: Vec<u32> = lines
        .map(|line| line.split_once(": ").unwrap().1.parse().unwrap())
        .collect();
    assert!(seconds.len() > 20 && seconds.is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_case_that_is_not_there_is_bad_usage() {
    let tree = tree();
    let output = suite(tree.path(), &["nosuch"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "run: there is no case \"nosuch\"\n"
    );
    assert!(!tree.path().join("calls").exists());
}

#[test]
fn an_interrupt_ends_the_guests() {
    let tree = tree();
    let mut child = suite(tree.path(), &["hang"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let file = tree.path().join("pid");
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let guest: i32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let there = Path::new("/proc").join(guest.to_string()).exists();
    assert!(!there, "the guest {guest} is still there");
}
