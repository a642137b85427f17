//! The skeleton of the program that reports events, generated from `trace.bpf.c`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
