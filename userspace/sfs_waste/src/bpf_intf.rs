//! Types that the BPF program and user space share, generated from `intf.h`.
#![allow(missing_docs, warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
