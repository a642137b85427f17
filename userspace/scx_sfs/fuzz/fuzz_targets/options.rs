//! Any arguments and any environment.

#![no_main]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The last line is the value of the one option that is also a variable.
    let variable = bytes
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if !variable.contains(&0) {
        std::env::set_var("SCX_SFS_LOG_SLICE", OsStr::from_bytes(variable));
    }
    common::check_options(bytes);
});
