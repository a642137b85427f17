//! The types shared with the program that records invocations, generated from `intf.h`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
