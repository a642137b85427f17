//! The kernel half's skeleton, generated from `sfs.bpf.c`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
