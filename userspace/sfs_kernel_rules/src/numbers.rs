//! Numbers that do not depend on the machine: buckets of time, and the names of groups.

use crate::ranks::{bucket_of, bucket_start};
use sfs_kernel_model::state::with;
use std::ffi::CString;

extern "C" {
    fn model_bucket_of(ns: u64) -> u32;
    fn model_bucket_start(bucket: u32) -> u64;
    fn model_significant_bits(n: u64) -> u32;
    fn model_mix_group_name(name: *const std::ffi::c_char, hash: u64) -> u64;
}

/// Names of groups, and what is left of them without a number at their end.
const GROUPS: [(&str, &str); 12] = [
    ("resize-7", "resize"),
    ("resize-12", "resize"),
    ("fn3", "fn3"),
    ("a-1-2", "a-1"),
    ("a_90", "a"),
    ("b.9", "b"),
    ("b-", "b-"),
    ("-5", "-5"),
    ("c-5x", "c-5x"),
    ("c-x5", "c-x5"),
    ("0123456789", "0123456789"),
    ("a-/9", "a-/9"),
];

/// Checks them once.
pub fn check() {
    let finding = |what: String| with(|s| s.finding(what));
    let edges = (0..90)
        .map(bucket_start)
        .chain((14..40).map(|bit| 1 << bit));
    for ns in edges
        .flat_map(|at| [at - 1, at, at + 1])
        .filter(|&ns| ns >= 0)
    {
        // SAFETY: takes plain values.
        let is = i64::from(unsafe { model_bucket_of(ns as u64) });
        if is != bucket_of(ns) {
            finding(format!(
                "{ns} ns are in bucket {is}, and should be in {}",
                bucket_of(ns)
            ));
        }
    }
    for bucket in 0..90 {
        // SAFETY: as above.
        let is = unsafe { model_bucket_start(bucket) } as i64;
        if is != bucket_start(i64::from(bucket)) {
            finding(format!("bucket {bucket} begins at {is} ns"));
        }
    }
    for n in (0..40).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]) {
        // SAFETY: as above.
        let is = unsafe { model_significant_bits(n) };
        if is != (u64::BITS - n.leading_zeros()).min(31) {
            finding(format!("{n} has {is} significant bits"));
        }
    }
    for (name, stem) in GROUPS {
        let text = CString::new(name).expect("no zero in it");
        // SAFETY: the text lives during the call.
        let is = unsafe { model_mix_group_name(text.as_ptr(), 77) };
        let expected = stem.bytes().fold(77_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        if is != expected {
            finding(format!("group {name} does not have the name of {stem}"));
        }
    }
}
