//! Any datagram is either read or refused, and what was read can be written
//! again.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check_any(bytes));
