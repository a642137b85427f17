//! The skeleton of the BPF program, generated from `waste.bpf.c`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
