//! `sfs_lab peers`, with a cargo that installs what it is asked for.

use sfs_scripts::{run, Place, Said};
use std::fs::File;
use std::process::Command;

/// It adds the name to `calls`, and fails for the peer in `$BAD`.
const CARGO: &str = r#"
while [[ $# -gt 1 ]]; do
    [[ $1 != --root ]] || root=$2
    shift
done
echo "$1" >>calls
[[ $CARGO_TARGET_DIR == "$PWD/userspace/target/peers" ]] || exit 102
[[ $1 != *"${BAD:-nothing}"* ]] || { echo 'error: no' && exit 101; }
mkdir -p "$root/bin"
echo x >"$root/bin/${1%@*}"
chmod 755 "$root/bin/${1%@*}"
echo "\"${1%@*} ${1#*@} (registry)\" = []" >>"$root/.crates.toml""#;

fn tree() -> Place {
    let tree = Place::new();
    tree.write("vm/run", "");
    tree.script("bin/cargo", CARGO);
    tree
}

/// Runs it with a cargo that cannot build `bad`.
fn peers(tree: &Place, bad: &str, arguments: &[&str]) -> Said {
    let path = format!("{}:{}", tree.text("bin"), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_sfs_lab"));
    command
        .arg("peers")
        .args(arguments)
        .current_dir(tree.path(""))
        .env_clear()
        .env("PATH", path)
        .env("BAD", bad);
    run(&mut command)
}

fn calls(tree: &Place) -> Vec<String> {
    tree.read("calls").lines().map(str::to_owned).collect()
}

#[test]
fn peers_are_built_once() {
    const INSTALLED: &str = ".cache/peers/.crates.toml";
    let tree = tree();
    peers(&tree, "", &[]).succeeded();
    assert_eq!(calls(&tree).len(), 7);
    let list = peers(&tree, "", &["--list"]);
    assert!(list
        .succeeded()
        .lines()
        .all(|line| line.ends_with(" built")));
    tree.remove("calls");
    peers(&tree, "", &[]).succeeded();
    assert!(calls(&tree).is_empty());

    let other: Vec<String> = tree
        .read(INSTALLED)
        .lines()
        .map(|line| match line.strip_prefix("\"scx_rusty ") {
            Some(_) => "\"scx_rusty 0.1 (registry)\" = []".to_owned(),
            None => line.to_owned(),
        })
        .collect();
    tree.write(INSTALLED, &(other.join("\n") + "\n"));
    peers(&tree, "", &[]).succeeded();
    let calls = calls(&tree);
    assert!(
        calls.len() == 1 && calls[0].starts_with("scx_rusty@"),
        "{calls:?}"
    );
}

#[test]
fn a_peer_that_fails_does_not_stop_the_others() {
    let tree = tree();
    let said = peers(&tree, "scx_flash", &[]);
    said.ended(1, "these could not be built: scx_flash\n");
    said.ended(
        1,
        "; the end of .cache/peers/scx_flash.log:\n    error: no\n",
    );
    assert_eq!(calls(&tree).len(), 7);
    assert_eq!(tree.read(".cache/peers/scx_flash.log"), "error: no\n");
    let list = peers(&tree, "", &["--list", "scx_flash", "scx_lavd"]);
    let lines: Vec<&str> = list.succeeded().lines().collect();
    assert!(lines[0].starts_with("scx_flash ") && lines[0].ends_with(" missing"));
    assert!(lines[1].starts_with("scx_lavd ") && lines[1].ends_with(" built"));
    assert_eq!(lines.len(), 2);
}

#[test]
fn one_build_at_a_time() {
    let tree = tree();
    tree.write(".cache/peers/lock", "");
    let lock = File::open(tree.path(".cache/peers/lock")).unwrap();
    lock.lock().unwrap();
    let text = "another build of the peers is at work in .cache/peers";
    peers(&tree, "", &["scx_flow"]).ended(2, text);
    lock.unlock().unwrap();
    peers(&tree, "", &["scx_flow"]).ended(0, "all are in .cache/peers/bin; make bench ");
    assert_eq!(calls(&tree).len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = tree();
    peers(&tree, "", &["scx_flow", "scx_nix"]).ended(2, "peers: 'scx_nix' is none of scx_bpfland ");
    peers(&tree, "", &["--fast"]).ended(2, "--fast");
    assert!(calls(&tree).is_empty());
}
