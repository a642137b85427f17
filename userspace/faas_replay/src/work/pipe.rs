//! Blocking on a pipe that another process, the peer, writes to.
//!
//! The peer takes orders on a socket: the time on the monotonic clock at which
//! to write, in nanoseconds, as eight bytes in native order, with the pipe
//! attached.

use crate::channel::send;
use nix::errno::Errno;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

/// Blocks on a new pipe until the peer behind the socket `peer` writes to it
/// when the monotonic clock shows `until_ns`.
///
/// # Errors
/// If there are too many open files, or the peer is gone.
pub fn block(peer: RawFd, until_ns: u64) -> Result<(), Errno> {
    // SAFETY: the replay keeps this socket open; otherwise sending would fail.
    let peer = unsafe { BorrowedFd::borrow_raw(peer) };
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    send(peer, &until_ns.to_ne_bytes(), Some(writer.as_fd()), false)?;
    // From now on the end of the peer is the end of the file.
    drop(writer);
    let mut byte = [0];
    loop {
        match nix::unistd::read(&reader, &mut byte) {
            Ok(0) => return Err(Errno::ECONNABORTED),
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}
