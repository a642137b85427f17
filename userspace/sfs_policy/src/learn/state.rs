//! The learned state as bytes, which survive a restart. The loader reads and writes the file.
//!
//! All numbers are little-endian. The format: eight bytes `sfslearn`, version (u16), number of
//! functions (u32), completions (u32), the overall histogram, the functions, in each class the
//! least recently used first (key u64, completions u32, CPU time in ns u64, seen again u8,
//! histogram), and a checksum (u64, FNV-1a of all bytes before it). A histogram is the number
//! of buckets that are not empty (u8), followed by the number (u8) and weight (u16) of each, in
//! ascending order.

use super::buckets::BUCKETS;
use super::burst::Burst;
use super::functions::Record;
use super::histogram::Histogram;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

const MAGIC: &[u8; 8] = b"sfslearn";

/// The version of the format written, and the only one accepted.
pub const VERSION: u16 = 1;

/// Why bytes were not produced by [`Learner::encode`](super::Learner::encode).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// Not a learned state.
    Foreign,
    /// Another version of the format.
    Version(u16),
    /// Truncated or changed.
    Damaged,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("this is not learned state of scx_sfs"),
            Self::Version(found) => write!(
                f,
                "the learned state has version {found} of its format, this program reads {VERSION}"
            ),
            Self::Damaged => f.write_str("the learned state is damaged"),
        }
    }
}

impl Error for StateError {}

/// The saved state.
#[derive(Debug)]
pub(super) struct Saved {
    pub completions: u32,
    pub overall: Histogram,
    pub records: Vec<Record>,
}

/// Encodes this state.
pub(super) fn encode<'a>(
    completions: u32,
    overall: &Histogram,
    records: impl Iterator<Item = &'a Record>,
) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let count_at = bytes.len();
    bytes.extend([0; 4]);
    bytes.extend(completions.to_le_bytes());
    put_histogram(&mut bytes, overall);
    let mut count = 0u32;
    for record in records {
        count += 1;
        bytes.extend(record.key.to_le_bytes());
        bytes.extend(record.completions.to_le_bytes());
        bytes.extend(record.work_ns.to_le_bytes());
        bytes.push(record.again.into());
        put_histogram(&mut bytes, &record.histogram);
    }
    bytes[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn put_histogram(bytes: &mut Vec<u8>, histogram: &Histogram) {
    let weights = || histogram.weights().iter().enumerate();
    let used = weights().filter(|(_, weight)| **weight > 0);
    bytes.push(used.clone().count() as u8);
    for (bucket, weight) in used {
        bytes.push(bucket as u8);
        bytes.extend(weight.to_le_bytes());
    }
}

/// Decodes these bytes.
pub(super) fn decode(bytes: &[u8]) -> Result<Saved, StateError> {
    let mut reader = Reader(bytes);
    if reader.take::<8>().as_ref() != Ok(MAGIC) {
        return Err(StateError::Foreign);
    }
    let version = u16::from_le_bytes(reader.take()?);
    if version != VERSION {
        return Err(StateError::Version(version));
    }
    let (body, sum) = bytes.split_last_chunk().ok_or(StateError::Damaged)?;
    if checksum(body) != u64::from_le_bytes(*sum) {
        return Err(StateError::Damaged);
    }
    let count = u32::from_le_bytes(reader.take()?);
    let completions = u32::from_le_bytes(reader.take()?);
    let overall = reader.histogram()?;
    // Nothing is preallocated, because the count is not trusted.
    let mut records = Vec::new();
    for _ in 0..count {
        records.push(reader.record()?);
    }
    if reader.0.len() != sum.len() {
        return Err(StateError::Damaged);
    }
    Ok(Saved {
        completions,
        overall,
        records,
    })
}

/// The bytes left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(StateError::Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    fn record(&mut self) -> Result<Record, StateError> {
        Ok(Record {
            key: u64::from_le_bytes(self.take()?),
            completions: u32::from_le_bytes(self.take()?),
            work_ns: u64::from_le_bytes(self.take()?),
            again: match self.take()? {
                [0] => false,
                [1] => true,
                _ => return Err(StateError::Damaged),
            },
            histogram: self.histogram()?,
            burst: Burst::default(),
        })
    }

    fn histogram(&mut self) -> Result<Histogram, StateError> {
        let mut weights = [0; BUCKETS];
        let [count] = self.take()?;
        let mut from = 0;
        for _ in 0..count {
            let [bucket] = self.take()?;
            let bucket = usize::from(bucket);
            if !(from..BUCKETS).contains(&bucket) {
                return Err(StateError::Damaged);
            }
            weights[bucket] = u16::from_le_bytes(self.take()?);
            from = bucket + 1;
        }
        Histogram::from_weights(weights).ok_or(StateError::Damaged)
    }
}

/// 64-bit FNV-1a (Fowler, Noll & Vo). Detects accidents, not attacks.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_agrees_with_published_values() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn errors_name_the_problem() {
        let good = encode(0, &Histogram::default(), core::iter::empty());
        assert!(decode(&good).is_ok());
        let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert_eq!(error(b""), "this is not learned state of scx_sfs");
        assert_eq!(
            error(&good[..good.len() - 1]),
            "the learned state is damaged"
        );
        let mut newer = good.clone();
        newer[8] = 2;
        assert_eq!(
            error(&newer),
            "the learned state has version 2 of its format, this program reads 1"
        );
    }
}
