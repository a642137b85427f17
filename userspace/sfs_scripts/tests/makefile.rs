//! The Makefile's set-up: with stand-ins for everything that its commands call, except make
//! and `scripts/setup-host`.

use nix::unistd::geteuid;
use sfs_scripts::{run, Host, Said, NOBODY};
use sfs_skip::skip;
use std::os::unix::process::CommandExt;

const NOT_ROOT: &str = "only root can try";
/// The targets that compile something.
const TARGETS: [&str; 33] = [
    "build",
    "demo",
    "test",
    "test-unit",
    "test-vm",
    "test-fresh",
    "test-service",
    "test-package",
    "test-full",
    "matrix",
    "overhead",
    "policies",
    "stress",
    "bench",
    "peers",
    "parity",
    "league",
    "wild",
    "paper",
    "platforms",
    "simulate",
    "scale",
    "coverage",
    "sanitize",
    "mutants",
    "microbench",
    "book",
    "lint",
    "audit",
    "reproducible",
    "deb",
    "package-crates",
    "dist",
];
/// The folders of scripts that the Makefile calls.
const FOLDERS: [&str; 5] = [
    "scripts/",
    "vm/",
    "tests/",
    "packaging/",
    "userspace/target/",
];

/// A machine without clang, with the Makefile. Each program that the Makefile calls adds the
/// clang that it was told to the file `clangs`.
fn project() -> Host {
    let host = Host::bare();
    host.stub_apt("clang-19");
    host.link("make");
    host.place.copy(&["Makefile"]);
    let note = format!(
        "echo \"${{BPF_CLANG:-none}}\" >>{}",
        host.place.text("clangs")
    );
    let makefile = host.place.read("Makefile");
    let makefile = makefile.replace("$(BUILT)", "userspace/target/release");
    let is_part = |c: char| c.is_ascii_lowercase() || "/._-".contains(c);
    for word in makefile.split(|c| !is_part(c)) {
        let is_program = FOLDERS.iter().any(|folder| {
            word.strip_prefix(folder)
                .is_some_and(|name| !name.is_empty() && !name.ends_with('/'))
        });
        if is_program && !host.place.path(word).exists() {
            host.place.script(word, &note);
        }
    }
    let version = "if [[ $1 == --version ]]; then echo 'cargo 1.95.0 (x)'";
    host.stub("cargo", &format!("{version}; else {note}; fi"));
    for tool in ["mmdebstrap", "git", "stress-ng", "chrt", "python3"] {
        host.stub(tool, "");
    }
    host.stub("cargo-deny", &note);
    host
}

fn make(host: &Host, target: &str, user: u32) -> Said {
    let mut command = host.command("bin/make");
    run(command.arg(target).uid(user).gid(user))
}

/// As the first command on a bare machine, each target runs nothing before clang is there.
#[test]
fn each_target_sets_up_before_it_builds() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    for target in TARGETS {
        let host = project();
        make(&host, target, 0).succeeded();
        let clangs = host.place.read("clangs");
        let told = !clangs.is_empty() && clangs.lines().all(|clang| clang == "clang-19");
        assert!(told, "make {target} told its programs: {clangs:?}");
    }
}

/// One command for everything that a user's command needs, not one after the other.
#[test]
fn users_are_asked_once_for_all_that_is_missing() {
    if !geteuid().is_root() {
        skip!(NOT_ROOT);
    }
    let host = project();
    host.without("cpio");
    host.without("shellcheck");
    let said = make(&host, "test", NOBODY);
    let command = "sudo apt-get install --no-install-recommends clang-19 libelf-dev zlib1g-dev shellcheck llvm-19 libclang-rt-19-dev cpio\n";
    assert_eq!((said.status, said.out.as_str()), (2, command), "{said:#?}");
}
