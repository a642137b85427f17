//! `sfs_suite same` with stand-ins for guests and platforms: which runs are compared, what is
//! kept, and how it ends.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use sfs_scripts::{run, Place, Said};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The race: its result has a line more in the runs that the file `other` names, the guests in
/// `broken` end too early, and those in `hang` do not end.
const VM_RUN: &str = r#"
while [[ $1 != -- ]]; do
    [[ $1 != --console ]] || { echo console >"$2" && run=$(basename "$(dirname "$2")"); }
    [[ $1 != --out ]] || { out=${2#/out:} && mkdir -p "$out/sub"; }
    shift
done
echo "$*" >>calls
is() { grep -qsx "$run" "$1"; }
! is hang || { echo $$ >pid.new && mv pid.new pid && sleep 60; }
! is broken || { echo 'run: the guest panicked' >&2 && exit 125; }
printf '%s\n' one two three >"$out/sub/interrupts"
! is other || echo four >>"$out/sub/interrupts"
echo said && exit 7"#;

/// A platform: says where it was told to put its results, which are the same.
const PLATFORM: &str = r#"echo "results in $OUT"; echo "jobs $JOBS" >"$OUT/result""#;

fn tree() -> Place {
    let tree = Place::new();
    tree.script("vm/run", VM_RUN);
    tree.script("vm/fetch", "echo fetched >>calls\necho kernel");
    tree.script("userspace/target/release/sfs_platforms", PLATFORM);
    tree
}

fn command(tree: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_suite"));
    command.arg("--tree").arg(tree.path(""));
    command.arg("same").args(arguments).env_remove("OUT");
    command
}

fn same(tree: &Place, arguments: &[&str]) -> Said {
    run(&mut command(tree, arguments))
}

/// The files and folders in a folder, sorted.
fn files(tree: &Place, folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(tree.path(folder)).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name();
    let mut names: Vec<_> = files
        .map(|file| name(file).into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn runs_that_are_the_same_are_not_kept() {
    let tree = tree();
    tree.write("out/same/race/old", "");
    let said = same(&tree, &["3"]);
    assert_eq!(said.succeeded(), "race: 3 pairs, 0 differ\n");
    let lines: Vec<String> = (1..=3)
        .map(|run| format!("same: run {run} of 3 is the same\n"))
        .collect();
    assert_eq!(said.err, lines.concat());
    assert_eq!(files(&tree, "out/same/race"), ["0"]);
    let kept = files(&tree, "out/same/race/0");
    assert_eq!(kept, ["console", "out", "stderr", "stdout"]);
    assert_eq!(tree.read("out/same/race/0/stdout"), "said\n");
    let race = "-- sh /bin/race\n".repeat(4);
    assert_eq!(tree.read("calls"), format!("fetched\n{race}"));
}

#[test]
fn runs_that_differ_are_kept_and_counted() {
    let tree = tree();
    tree.write("other", "2\n4\n");
    tree.write("broken", "3\n");
    let mut command = command(&tree, &["--jobs", "2", "4"]);
    let said = run(command.env("OUT", "kept"));
    assert_eq!(
        (said.status, said.out.as_str()),
        (1, "race: 4 pairs, 3 differ\n")
    );
    let begin = "same: run 2 of 4 DIFFERS: diff -r ";
    assert!(said.err.contains(begin), "{}", said.err);
    assert!(said.err.contains("\n3a4\n> four\n"), "{}", said.err);
    assert!(said.err.contains("same: run 1 of 4 is the same\n"));
    assert_eq!(files(&tree, "kept"), ["0", "2", "3", "4"]);
    assert_eq!(tree.read("kept/3/failed"), "exit status 125\n");
}

#[test]
fn without_a_first_run_there_is_no_second() {
    let tree = tree();
    tree.write("broken", "0\n");
    let said = same(&tree, &["2"]);
    said.ended(125, "same: the first run failed; ");
    assert_eq!(tree.read("calls"), "fetched\n-- sh /bin/race\n");
    assert_eq!(
        tree.read("out/same/race/0/stderr"),
        "run: the guest panicked\n"
    );
}

#[test]
fn without_what_guests_need_there_is_no_run() {
    let tree = tree();
    tree.script("vm/fetch", "exit 125");
    same(&tree, &["1"]).ended(125, "vm/fetch ended with exit status 125");
    assert!(!tree.path("calls").exists());
}

#[test]
fn messages_of_platforms_are_not_compared() {
    let tree = tree();
    let said = run(command(&tree, &["1", "lambda"]).env("OUT", ""));
    assert_eq!(said.succeeded(), "lambda: 1 pairs, 0 differ\n");
    assert_eq!(files(&tree, "out/same/lambda"), ["0", "0.log"]);
    assert_eq!(tree.read("out/same/lambda/0/result"), "jobs 1\n");
    let results = tree.text("out/same/lambda/0");
    let log = tree.read("out/same/lambda/0.log");
    assert_eq!(log, format!("results in {results}\n"));
    tree.script("userspace/target/release/sfs_platforms", "exit 3");
    same(&tree, &["1", "lambda"]).ended(125, "the first run failed");
    assert_eq!(tree.read("out/same/lambda/0/failed"), "exit status 3\n");
}

#[test]
fn an_interrupt_ends_the_guests() {
    let tree = tree();
    tree.write("hang", "1\n");
    let mut child = command(&tree, &["2"]).spawn().unwrap();
    while !tree.path("pid").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let guest = Path::new("/proc").join(tree.read("pid").trim());
    assert!(!guest.exists(), "{guest:?} is still there");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = tree();
    for (arguments, text) in [
        (&[][..], "PAIRS"),
        (&["0"], "'0'"),
        (&["1000000"], "'1000000'"),
        (&["many"], "'many'"),
        (&["1", "sprint"], "race, functions-framework, lambda"),
        (&["1", "--jobs", "0"], "'0'"),
        (&["1", "--jobs", "100"], "'100'"),
        (&["1", "race", "more"], "'more'"),
    ] {
        same(&tree, arguments).ended(2, text);
    }
    assert!(!tree.path("calls").exists());
}
