//! Any file for --learn-state: it is refused, or it can be learned on with.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check_any(bytes));
