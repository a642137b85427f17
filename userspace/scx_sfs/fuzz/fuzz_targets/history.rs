//! Any content of the history file.

#![no_main]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check_history(bytes));
