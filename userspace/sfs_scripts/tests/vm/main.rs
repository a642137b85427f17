//! `vm/run` and its parts, with guests that boot: `make test` runs these after the build.

mod endings;
mod image;
mod same;

use sfs_scripts::{run, top, Said};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

/// A script of `vm/`.
fn script(name: &str) -> PathBuf {
    top().join("vm").join(name)
}

/// `vm/run` with these arguments; QEMU, busybox and a kernel are fetched first.
fn guest(arguments: &[&str]) -> Said {
    static FETCHED: Once = Once::new();
    FETCHED.call_once(|| {
        run(&mut Command::new(script("fetch"))).succeeded();
    });
    run(Command::new(script("run")).args(arguments))
}
