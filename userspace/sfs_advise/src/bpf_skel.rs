//! The skeleton of the program that records invocations, generated from `record.bpf.c`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
