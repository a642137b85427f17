//! Builds the kernel half and its Rust bindings, with the clang that BPF_CLANG
//! names (the Makefile finds one).

#[path = "build/neutral.rs"]
mod neutral;

#[path = "build/bindings.rs"]
mod bindings;
#[path = "build/counters.rs"]
mod counters;

use std::path::PathBuf;
use std::{env, fs};

use neutral::Neutral;

/// The sources in this package: in the repository a link, so that `cargo package` takes them along.
const PACKAGED: &str = "kernel_half";

/// Where the repository has them. The build sees them there.
const KERNEL_HALF: &str = "../../scheds/sfs_bpf";

fn main() {
    let neutral = Neutral::enter(PACKAGED, KERNEL_HALF).expect("cannot prepare the BPF build");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed={PACKAGED}");
    scx_cargo::BpfBuilder::new()
        .expect("cannot set up the BPF build")
        .enable_intf(&format!("{KERNEL_HALF}/intf.h"), "bpf_intf.rs")
        .enable_skel(&format!("{KERNEL_HALF}/sfs.bpf.c"), "bpf")
        .build()
        .expect("cannot build the kernel half, see the compiler's messages above");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let intf = out.join("bpf_intf.rs");
    let text = fs::read_to_string(&intf).expect("cannot read the bindings");
    let text = bindings::with_conversions(&text).expect("the bindings have an unexpected form");
    fs::write(&intf, text).expect("cannot write the bindings");

    let header = format!("{KERNEL_HALF}/counters.h");
    let header = fs::read_to_string(header).expect("cannot read counters.h");
    let list = counters::to_macro(&header).unwrap_or_else(|why| panic!("counters.h: {why}"));
    fs::write(out.join("counters.rs"), list).expect("cannot write the list of counters");

    neutral
        .leave("bpf_skel.rs")
        .expect("cannot copy the build results");
}
