//! Builds the program that reports the kernel's scheduling events, with the clang that
//! BPF_CLANG names (the Makefile finds one).

#[path = "build/neutral.rs"]
mod neutral;

use neutral::Neutral;

const SOURCES: &str = "src/bpf";

fn main() {
    let neutral = Neutral::enter(SOURCES, SOURCES).expect("cannot prepare the BPF build");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed={SOURCES}");
    scx_cargo::BpfBuilder::new()
        .expect("cannot set up the BPF build")
        .enable_intf(&format!("{SOURCES}/intf.h"), "bpf_intf.rs")
        .enable_skel(&format!("{SOURCES}/waste.bpf.c"), "bpf")
        .build()
        .expect("cannot build the BPF program, see the compiler's messages above");
    neutral
        .leave("bpf_skel.rs")
        .expect("cannot copy the build results");
}
