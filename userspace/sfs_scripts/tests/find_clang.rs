//! `scripts/find-clang`, on a machine with several compilers.

use sfs_scripts::{run, Host, Said};

/// A machine with these compilers: name and version.
fn host(clangs: &[(&str, u32)]) -> Host {
    let host = Host::bare();
    for (name, version) in clangs {
        host.stub_clang(name, *version);
    }
    host
}

#[track_caller]
fn finds(host: &Host, clang: &str) {
    assert_eq!(host.run("find-clang", &[]).succeeded().trim_end(), clang);
}

fn with_bpf_clang(host: &Host, clang: &str) -> Said {
    run(host.command("scripts/find-clang").env("BPF_CLANG", clang))
}

#[test]
fn the_newest_is_preferred() {
    let host = host(&[
        ("clang-18", 18),
        ("clang-20", 20),
        ("clang-9", 9),
        ("clang", 19),
    ]);
    host.stub("clang-cpp-21", "");
    finds(&host, "clang-20");
    host.stub_clang("clang", 21);
    finds(&host, "clang");
}

#[test]
fn a_clang_without_bpf_is_passed_over() {
    let host = host(&[("clang-19", 19)]);
    host.stub_clang_for("clang-20", 20, "x86");
    finds(&host, "clang-19");
}

#[test]
fn old_ones_are_refused() {
    const NONE: &str = "no clang 18 or later";
    host(&[]).run("find-clang", &[]).ended(1, NONE);
    let old = host(&[("clang", 14), ("clang-17", 17)]);
    old.run("find-clang", &[]).ended(1, NONE);
}

#[test]
fn bpf_clang_is_checked_and_obeyed() {
    let host = host(&[("clang-20", 20), ("mine", 19), ("old", 14)]);
    assert_eq!(with_bpf_clang(&host, "mine").succeeded(), "mine\n");
    with_bpf_clang(&host, "old").ended(1, "BPF_CLANG=old is not");
    with_bpf_clang(&host, "none").ended(1, "BPF_CLANG=none is not");
}
