//! Files: written and deleted as a kind of computing, and written, synced and
//! read as a kind of blocking.
//!
//! Both work in the current folder, which is a private one in a replay, and
//! delete their files. Their cost depends on the file system: one in memory
//! never blocks.

use nix::errno::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes per write.
const PIECE: usize = 4096;

/// The content.
static CONTENT: [u8; PIECE] = [b'x'; PIECE];

/// Pieces of a file that is deleted at once.
const PIECES: u64 = 4;

/// Pieces written before a sync.
const SYNCED: u64 = 16;

/// The files of one process.
///
/// It is kept small, since processes are forked with it on their stack.
#[derive(Debug, Default)]
pub struct Files {
    made: u64,
}

impl Files {
    /// Writes and deletes `count` files of 16 KiB.
    ///
    /// # Errors
    /// If the folder cannot be written or is full.
    pub fn write_and_delete(&mut self, count: u64) -> Result<(), Errno> {
        for _ in 0..count {
            let name = self.name();
            let written = File::create_new(&name).and_then(|file| write(&file, PIECES));
            let removed = fs::remove_file(&name);
            written.and(removed).map_err(errno)?;
        }
        Ok(())
    }

    /// Writes 64 KiB, syncs and reads them, at least once, repeatedly until
    /// `clock` shows `until_ns`.
    ///
    /// # Errors
    /// As [`Files::write_and_delete`].
    pub fn sync_until(
        &mut self,
        until_ns: u64,
        mut clock: impl FnMut() -> u64,
    ) -> Result<(), Errno> {
        let name = self.name();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&name)
            .map_err(errno)?;
        let mut outcome = sync(&file);
        while outcome.is_ok() && clock() < until_ns {
            outcome = sync(&file);
        }
        outcome.and(fs::remove_file(&name)).map_err(errno)
    }

    /// A name that is unique in this folder.
    fn name(&mut self) -> String {
        self.made += 1;
        format!("faasbench-{}-{}", std::process::id(), self.made)
    }
}

fn sync(file: &File) -> io::Result<()> {
    write(file, SYNCED)?;
    file.sync_all()?;
    let mut buffer = [0; PIECE];
    for piece in 0..SYNCED {
        file.read_exact_at(&mut buffer, piece * PIECE as u64)?;
    }
    Ok(())
}

fn write(file: &File, pieces: u64) -> io::Result<()> {
    for piece in 0..pieces {
        file.write_all_at(&CONTENT, piece * PIECE as u64)?;
    }
    Ok(())
}

fn errno(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let _turn = super::super::FOLDER.lock();
        let mut files = Files::default();
        files.write_and_delete(3).unwrap();
        let mut looks = 0;
        let clock = || {
            looks += 1;
            looks
        };
        files.sync_until(3, clock).unwrap();
        assert_eq!((looks, files.made), (3, 4));
        let prefix = format!("faasbench-{}-", std::process::id());
        let mut left = fs::read_dir(".").unwrap();
        assert!(!left.any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_string_lossy() == format!("{prefix}1")
                || name.to_string_lossy() == format!("{prefix}4")
        }));
    }
}
