//! `scripts/setup-host`, on a machine whose package managers are stand-ins.

use nix::unistd::geteuid;
use sfs_scripts::Host;
use sfs_skip::skip;

const NOT_ROOT: &str = "only root can try";
const UPDATE: &str = "apt-get -o DPkg::Lock::Timeout=300 update";
const INSTALL: &str = "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends clang-19 libelf-dev zlib1g-dev";

/// A machine without clang and libraries, whose apt has these packages of clang.
fn debian(clangs: &str) -> Host {
    let host = Host::bare();
    host.stub_apt(clangs);
    host
}

#[test]
fn it_is_silent_when_nothing_is_missing() {
    let host = Host::complete();
    host.stub_apt("clang-19");
    let said = host.run("setup-host", &["build", "test", "variants", "vm"]);
    assert_eq!(said.succeeded().to_owned() + &said.err, "");
    assert!(host.log().is_empty());
}

#[test]
fn it_installs_what_is_missing() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = debian("clang-16 clang-19 clang-21");
    host.run("setup-host", &[]).succeeded();
    assert_eq!(host.log(), [INSTALL]);
}

#[test]
fn without_clang_19_it_installs_the_newest() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = debian("clang-18 clang-20 clang-9");
    host.run("setup-host", &[]).succeeded();
    assert!(host.log()[0].contains("install -y --no-install-recommends clang-20 "));
}

/// Tools of LLVM are those of the clang that is here, not of the newest one.
#[test]
fn tools_of_llvm_have_the_version_of_clang() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = debian("clang-18 clang-19");
    host.stub_clang("clang-18", 18);
    host.place.write("libraries", "");
    host.run("setup-host", &["variants"]).succeeded();
    assert!(host.log()[0].ends_with(" llvm-18"), "{:?}", host.log());
}

#[test]
fn it_updates_an_empty_index_first() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = debian("");
    host.run("setup-host", &[]).succeeded();
    assert_eq!(host.log(), [UPDATE, INSTALL]);
}

#[test]
fn it_updates_a_stale_index_once() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = debian("clang-19");
    let log = host.place.text("log");
    host.stub(
        "apt-get",
        &format!("echo \"$3\" >>{log}\n[[ $3 == update ]]"),
    );
    assert_ne!(host.run("setup-host", &[]).status, 0);
    assert_eq!(host.log(), ["install", "update", "install"]);
}

#[test]
fn it_says_that_the_release_is_too_old() {
    let host = debian("clang-14 clang-15");
    host.run("setup-host", &[])
        .ended(1, "no clang that is recent enough");
}

#[test]
fn it_gives_users_the_command() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    const COMMAND: &str =
        "sudo apt-get install --no-install-recommends clang-19 libelf-dev zlib1g-dev\n";
    let host = debian("clang-19");
    let said = host.run_as_user("setup-host", &[]);
    assert_eq!((said.status, said.out.as_str()), (1, COMMAND));
    assert!(host.log().is_empty());
    let host = debian("");
    host.run_as_user("setup-host", &[])
        .ended(1, &format!("sudo apt-get update && {COMMAND}"));
}

#[test]
fn it_knows_fedora_and_arch() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = Host::bare();
    for tool in ["make", "pkg-config", "shellcheck"] {
        host.without(tool);
    }
    let log = host.place.text("log");
    host.stub("dnf", &format!("echo \"dnf $*\" >>{log}"));
    host.run("setup-host", &["test"]).ended(1, "still missing");
    assert_eq!(
        host.log(),
        ["dnf install -y clang elfutils-libelf-devel zlib-devel pkgconf-pkg-config make ShellCheck"]
    );
    host.run_as_user("setup-host", &[])
        .ended(1, "sudo dnf install -y clang");

    let host = Host::bare();
    let log = host.place.text("log");
    host.stub("pacman", &format!("echo \"pacman $*\" >>{log}"));
    host.run("setup-host", &[]).ended(1, "still missing");
    assert_eq!(
        host.log(),
        ["pacman -S --needed --noconfirm clang libelf zlib"]
    );
}

#[test]
fn it_admits_that_it_does_not_know_a_machine() {
    Host::bare()
        .run("setup-host", &[])
        .ended(1, "install by other means: clang libelf zlib");
}

#[test]
fn it_installs_only_the_sets_asked_for() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = Host::complete();
    host.stub_apt("clang-19");
    host.without("cpio");
    host.without("shellcheck");
    host.run("setup-host", &[]).succeeded();
    assert!(host.log().is_empty());
    host.run("setup-host", &["vm"]).ended(1, "still missing");
    assert!(host.log().iter().any(|line| line.ends_with(" cpio")));
}

#[test]
fn it_refuses_unknown_sets() {
    Host::complete()
        .run("setup-host", &["tests"])
        .ended(1, "'tests' is not one of");
}

#[test]
fn it_wants_a_recent_rust() {
    let host = Host::complete();
    host.stub("cargo", "echo 'cargo 1.90.0-nightly (x)'");
    host.run("setup-host", &[])
        .ended(1, "Rust 1.90.0 is too old, 1.91 or later");
    host.stub("cargo", "echo 'cargo 1.100.0'");
    host.run("setup-host", &[]).succeeded();
    host.without("cargo");
    host.run("setup-host", &[]).ended(1, "no cargo in PATH");
}

/// rustup's cargo fails like that without the toolchain that is pinned.
#[test]
fn it_names_the_rust_that_is_missing() {
    let host = Host::complete();
    host.stub(
        "cargo",
        "echo 'error: toolchain is not installed' >&2\nexit 1",
    );
    let pinned = "[toolchain]\nchannel = \"1.95.0\"\n";
    host.place.write("rust-toolchain.toml", pinned);
    let said = host.run("setup-host", &[]);
    said.ended(1, "rustup toolchain install 1.95.0");
    said.ended(1, "from 1.91 on");
}
