//! Any text and any dump of the kernel about the end of a scheduler.

#![no_main]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check_exit_text(bytes));
