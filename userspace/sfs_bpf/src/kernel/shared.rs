//! Memory shared by both halves: words that either half may read and write at any time, and
//! structs passed from one half to the other as bytes.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use anyhow::{bail, Result};
use libbpf_rs::{ProgramInput, ProgramMut};
use zerocopy::{transmute_mut, FromBytes, Immutable, IntoBytes};

/// A word of the kernel half's variables, which are mapped into this process. The kernel half
/// accesses it concurrently, in one piece. Words are independent of each other, so no ordering
/// is needed.
pub(super) trait Word: Sized {
    /// Returns its current value.
    fn load(&mut self) -> Self;

    /// Stores `value`.
    fn store(&mut self, value: Self);
}

macro_rules! word {
    ($($plain:ty as $atomic:ty),*) => {
        $(impl Word for $plain {
            fn load(&mut self) -> Self {
                let word: &mut $atomic = transmute_mut!(self);
                // Through a shared reference: the kernel half accesses the value as well.
                <$atomic>::load(word, Ordering::Relaxed)
            }

            fn store(&mut self, value: Self) {
                let word: &mut $atomic = transmute_mut!(self);
                <$atomic>::store(word, value, Ordering::Relaxed);
            }
        })*
    };
}

word!(u32 as AtomicU32, u64 as AtomicU64, i32 as AtomicI32);

/// Runs a program of the kernel half that takes and fills a C struct of `intf.h`.
///
/// # Errors
///
/// The kernel does not run it, or the program returns an error.
pub(super) fn run_program<T>(program: &mut ProgramMut<'_>, arguments: &mut T) -> Result<()>
where
    T: FromBytes + IntoBytes,
{
    let input = ProgramInput {
        context_in: Some(arguments.as_mut_bytes()),
        ..ProgramInput::default()
    };
    let output = program.test_run(input)?;
    if output.return_value != 0 {
        bail!("error {}", output.return_value);
    }
    Ok(())
}

/// Returns the struct at the start of `bytes`, or None if they are too short.
pub(super) fn read_struct<T: FromBytes + Immutable>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf_intf::{sfs_event, sfs_stats};

    #[test]
    fn a_word_is_read_as_it_was_written() {
        let (mut small, mut large, mut signed) = (1_u32, 2_u64, 3_i32);
        Word::store(&mut small, u32::MAX);
        Word::store(&mut large, u64::MAX - 1);
        Word::store(&mut signed, -7);
        assert_eq!((small, large, signed), (u32::MAX, u64::MAX - 1, -7));
        let loaded = (Word::load(&mut small), Word::load(&mut large));
        assert_eq!(loaded, (u32::MAX, u64::MAX - 1));
        assert_eq!(Word::load(&mut signed), -7);
    }

    #[test]
    fn a_struct_is_read_from_bytes_anywhere() {
        let event = sfs_event {
            kind: 3,
            pad: 0,
            value: 1 << 40,
            at: 5,
        };
        // One byte in front, so that the struct is not aligned as in C.
        let mut bytes = vec![0];
        bytes.extend(event.as_bytes());
        let read: sfs_event = read_struct(&bytes[1..]).unwrap();
        assert_eq!((read.kind, read.value, read.at), (3, 1 << 40, 5));
        assert!(read_struct::<sfs_event>(&bytes[2..]).is_none());
        assert!(read_struct::<sfs_stats>(&bytes).is_none());
    }
}
