//! Compiles the kernel half for the host, with the clang that BPF_CLANG names.
//!
//! With SFS_MODEL_SHARED=FOLDER it becomes a shared library in this folder, which another one may
//! replace at run time (LD_LIBRARY_PATH), and the command that compiles it is written beside it,
//! an argument a line: `sfs_variants` makes its variants with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const KERNEL_HALF: &str = "../../scheds/sfs_bpf";

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-env-changed=SFS_MODEL_SHARED");
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
    let mut build = cc::Build::new();
    build
        .compiler(env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_string()))
        .file("c/model.c")
        .include("c/include")
        // A kernel half of the past has another half.h.
        .include("c/half")
        .include(headers.join("arch").join(arch))
        .include(&headers)
        .include(KERNEL_HALF)
        .define("BPF_NO_PRESERVE_ACCESS_INDEX", None)
        .define(&format!("__TARGET_ARCH_{arch}"), None)
        // The kernel is compiled so as well.
        .flag("-fno-strict-aliasing")
        // Each access to memory is a point at which other CPUs may proceed (c/points.h).
        .flag("-fsanitize-coverage=func,trace-loads,trace-stores")
        .flag("-Wno-everything");
    match env::var_os("SFS_MODEL_SHARED") {
        None => build.compile("kernel_half"),
        Some(folder) => link_shared(&build, Path::new(&folder)),
    }
}

/// Compiles and links `libkernel_half.so` in `folder`.
fn link_shared(build: &cc::Build, folder: &Path) {
    let compiler = build.get_compiler();
    let mut command = vec![compiler.path().to_path_buf().into_os_string()];
    command.extend(compiler.args().iter().cloned());
    let here = env::current_dir().expect("there is a current folder");
    command.extend(build.get_files().map(|file| here.join(file).into()));
    let lines: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    fs::create_dir_all(folder).expect("cannot make the folder of SFS_MODEL_SHARED");
    fs::write(folder.join("command"), lines.join("\n")).expect("cannot write the command");
    let status = Command::new(&command[0])
        .args(&command[1..])
        .args(["-fPIC", "-shared", "-o"])
        .arg(folder.join("libkernel_half.so"))
        .status();
    assert!(
        status.expect("clang runs").success(),
        "clang cannot compile the kernel half"
    );
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=kernel_half");
}
