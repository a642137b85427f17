//! Builds the kernel half and its Rust bindings, with the clang that BPF_CLANG
//! names (the Makefile finds one).

#[path = "../neutral.rs"]
mod neutral;

use neutral::Neutral;

const KERNEL_HALF: &str = "../../scheds/sfs_bpf";

fn main() {
    let neutral = Neutral::enter(KERNEL_HALF).expect("cannot prepare the BPF build");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed={KERNEL_HALF}");
    scx_cargo::BpfBuilder::new()
        .expect("cannot set up the BPF build")
        .enable_intf(&format!("{KERNEL_HALF}/intf.h"), "bpf_intf.rs")
        .enable_skel(&format!("{KERNEL_HALF}/sfs.bpf.c"), "bpf")
        .build()
        .expect("cannot build the kernel half, see the compiler's messages above");
    neutral
        .leave("bpf_skel.rs")
        .expect("cannot take over what was built");
}
