//! The identity of a function: FNV-1a over the words of its program's and its parent's name,
//! within its tenant.

use crate::look::Look;
use std::num::Wrapping;

/// FNV-1a, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: Wrapping<u64> = Wrapping(0x100_0000_01b3);
/// A name given by a hint or by the loader; the name of a program.
const NAMED: u64 = 1 << 63;
const COMM: u64 = 1 << 62;
/// So many identities have a tenant's programs.
const OF_TENANT: u64 = 4096;

fn mix(hash: u64, words: [u64; 2]) -> u64 {
    let mut hash = Wrapping(hash);
    hash = (hash ^ Wrapping(words[0])) * PRIME;
    hash ^= hash >> 29;
    hash = (hash ^ Wrapping(words[1])) * PRIME;
    (hash ^ hash >> 32).0
}

/// The identity of the function that a task works for.
pub fn identity(l: &Look) -> i64 {
    if l.identity != 0 && l.sandbox != 0 {
        return l.owner;
    }
    let words = [l.comm_a, l.comm_b, l.parent_a, l.parent_b].map(|word| word as u64);
    let mut hash = mix(mix(BASIS, [words[0], words[1]]), [words[2], words[3]]);
    if l.owner != 0 {
        hash = mix(BASIS, [l.owner as u64, hash % OF_TENANT]);
    }
    ((hash & !(NAMED | COMM)) | COMM) as i64
}
