//! Compiles the kernel half for the host, with the clang that BPF_CLANG names.

use std::env;
use std::path::PathBuf;

const KERNEL_HALF: &str = "../../scheds/sfs_bpf";

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    for path in [KERNEL_HALF, "c"] {
        println!("cargo:rerun-if-changed={path}");
    }
    // The headers that the BPF program is compiled with; this call unpacks them.
    scx_cargo::BpfBuilder::new().expect("cannot unpack sched_ext's headers");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let headers = out.join("scx_utils-bpf_h");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        _ => "x86",
    };
    cc::Build::new()
        .compiler(env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_string()))
        .file("c/model.c")
        .include("c/include")
        .include(headers.join("arch").join(arch))
        .include(&headers)
        .include(KERNEL_HALF)
        .define("BPF_NO_PRESERVE_ACCESS_INDEX", None)
        // The kernel is compiled so as well.
        .flag("-fno-strict-aliasing")
        .flag("-Wno-everything")
        .compile("kernel_half");
}
