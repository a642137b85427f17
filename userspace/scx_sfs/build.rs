//! Builds the kernel half and its Rust bindings.

use std::env;
use std::process::{Command, Stdio};

const KERNEL_HALF: &str = "../../scheds/sfs_bpf";

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed={KERNEL_HALF}");
    if env::var_os("BPF_CLANG").is_none() {
        env::set_var("BPF_CLANG", find_clang());
    }
    scx_cargo::BpfBuilder::new()
        .expect("cannot set up the BPF build")
        .enable_intf(&format!("{KERNEL_HALF}/intf.h"), "bpf_intf.rs")
        .enable_skel(&format!("{KERNEL_HALF}/sfs.bpf.c"), "bpf")
        .build()
        .expect("cannot build the kernel half, see the compiler's messages above");
}

/// Returns the name of a clang that compiles for BPF cpu v4: plain `clang`, if
/// it is 18 or later, else the newest with a version in its name, as on Debian.
fn find_clang() -> String {
    let versioned = (18..=30).rev().map(|version| format!("clang-{version}"));
    ["clang".to_string()]
        .into_iter()
        .chain(versioned)
        .find(|name| clang_version(name).is_some_and(|version| version >= 18))
        .expect("found no clang of version 18 or later; install one, or name it in BPF_CLANG")
}

/// Returns the major version of the clang called `name`, if there is one.
fn clang_version(name: &str) -> Option<u32> {
    let output = Command::new(name)
        .arg("-dumpversion")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.trim().split('.').next()?.parse().ok()
}
