//! `sfs_suite search` with a stand-in for vm/run: its options, and what it refuses.

use sfs_scripts::{run, Place, Said};
use std::process::Command;

const BINARIES: &str = "userspace/target/release";

/// A repository in which vm/run prints its arguments, a line each, and ends with status 1.
fn tree() -> Place {
    let tree = Place::new();
    tree.script("vm/run", "printf '%s\\n' \"$@\"\nexit 1");
    for name in ["scx_sfs", "sfs_behaviour"] {
        tree.script(&format!("{BINARIES}/{name}"), "");
    }
    tree
}

fn search(tree: &Place, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_suite"));
    command.arg("--tree").arg(tree.path("")).arg("search");
    run(command.args(arguments))
}

/// The options of vm/run, and the words for the guest's program.
fn called(tree: &Place, arguments: &[&str]) -> (String, String) {
    let said = search(tree, arguments);
    assert_eq!(said.status, 1, "that of the guest: {said:#?}");
    let out = said.out.replace(&tree.text(""), "");
    let (options, words) = out.split_once("--\nsfs_behaviour\n").unwrap();
    let join = |text: &str| text.lines().collect::<Vec<_>>().join("|");
    (join(options), join(words))
}

#[test]
fn options_are_those_of_the_guest_or_of_its_machine() {
    let tree = tree();
    let programs = format!("--in|{BINARIES}/scx_sfs|--in|{BINARIES}/sfs_behaviour");
    assert_eq!(
        called(&tree, &["0"]),
        (
            format!("--timeout|14400|{programs}"),
            "--search|0".to_string()
        )
    );
    let machine = ["--cpus", "2", "--kernel", "7.2", "--timeout", "9"];
    let guest = [
        "--seed",
        "1",
        "--harm",
        "--options",
        "--policy learned --cgroup a/*",
        "--seed",
        "3",
        "50",
    ];
    assert_eq!(
        called(&tree, &[&machine[..], &guest].concat()),
        (
            format!("--timeout|9|--cpus|2|--kernel|7.2|{programs}"),
            "--search|50|--options|--policy learned --cgroup a/*|--seed|3|--harm".to_string()
        )
    );
    let plan = "4 burn:1000 accept";
    let (_, words) = called(&tree, &["--replay", plan]);
    assert_eq!(words, format!("--replay|{plan}"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = tree();
    let refused = |arguments: &[&str], text: &str| search(&tree, arguments).ended(2, text);
    refused(&[], "GENERATIONS");
    for number in ["many", "100000", "+5", ""] {
        let text = format!("want a number of generations, not '{number}'");
        refused(&[number], &text);
    }
    refused(&["-5"], "unexpected argument '-5'");
    refused(&["5", "--cpus"], "--cpus");
    refused(&["5", "--replay", "1 burn:5"], "cannot be used with");
    refused(&["5", "--fast"], "unexpected argument '--fast'");
    tree.remove(&format!("{BINARIES}/sfs_behaviour"));
    let text = format!("search: {BINARIES}/sfs_behaviour is not built; run make first\n");
    refused(&["5"], &text);
}
