//! Any file for --learn-state is refused, or learning continues with it.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check_any(bytes));
