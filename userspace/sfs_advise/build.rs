//! Builds the program that records invocations, with the clang that BPF_CLANG names (the
//! Makefile finds one).

#[path = "build/bindings.rs"]
mod bindings;
#[path = "build/neutral.rs"]
mod neutral;

use std::path::PathBuf;
use std::{env, fs};

use neutral::Neutral;

const SOURCES: &str = "src/bpf";

fn main() {
    let neutral = Neutral::enter(SOURCES, SOURCES).expect("cannot prepare the BPF build");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed={SOURCES}");
    scx_cargo::BpfBuilder::new()
        .expect("cannot set up the BPF build")
        .enable_intf(&format!("{SOURCES}/intf.h"), "bpf_intf.rs")
        .enable_skel(&format!("{SOURCES}/record.bpf.c"), "bpf")
        .build()
        .expect("cannot build the BPF program, see the compiler's messages above");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let intf = out.join("bpf_intf.rs");
    let text = fs::read_to_string(&intf).expect("cannot read the bindings");
    let text = bindings::with_conversions(&text).expect("the bindings have an unexpected form");
    fs::write(&intf, text).expect("cannot write the bindings");
    neutral
        .leave("bpf_skel.rs")
        .expect("cannot copy the build results");
}
