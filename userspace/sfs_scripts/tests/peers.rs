//! `scripts/peers`, with a cargo that installs what it is asked for.

use sfs_scripts::{run, Place, Said};

/// It adds the name to `calls`, and fails for the peer in `$BAD`.
const CARGO: &str = r#"
while [[ $# -gt 1 ]]; do
    [[ $1 != --root ]] || root=$2
    shift
done
echo "$1" >>calls
[[ $1 != *"${BAD:-nothing}"* ]] || { echo 'error: no' && exit 101; }
mkdir -p "$root/bin"
echo x >"$root/bin/${1%@*}"
chmod 755 "$root/bin/${1%@*}"
echo "\"${1%@*} ${1#*@} (registry)\" = []" >>"$root/.crates.toml""#;

fn tree() -> Place {
    let tree = Place::with(&["scripts/peers"]);
    tree.script("bin/cargo", CARGO);
    tree
}

/// Runs `scripts/peers` with a cargo that cannot build `bad`.
fn peers(tree: &Place, bad: &str, arguments: &[&str]) -> Said {
    let path = format!("{}:{}", tree.text("bin"), std::env::var("PATH").unwrap());
    let mut command = tree.command("scripts/peers");
    run(command.env("PATH", path).env("BAD", bad).args(arguments))
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
    peers(&tree, "scx_flash", &[]).ended(1, "these could not be built: scx_flash");
    assert_eq!(calls(&tree).len(), 7);
    peers(&tree, "", &["scx_nix"]).ended(2, "'scx_nix' is none of");
}
