//! The other end of the pipes that invocations block on: a process that writes
//! to each of them at its time, like a service that answers. The orders are
//! defined in [`crate::work::pipe`].

use super::realtime::{become_helper, raise_file_limit};
use crate::channel::{receive, Received};
use crate::clock::monotonic_ns;
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the peer on its standard input, a socket, until the last sender is gone.
/// Returns its exit code.
pub fn main() -> ExitCode {
    raise_file_limit();
    let prepared = become_helper();
    if prepared.and_then(|()| Peer::default().run()).is_ok() {
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

/// Pipes to write to, by time; the number separates those of the same time.
#[derive(Debug, Default)]
struct Peer {
    waiting: BTreeMap<(u64, u64), OwnedFd>,
    received: u64,
}

impl Peer {
    fn run(mut self) -> Result<(), Errno> {
        let orders = std::io::stdin();
        loop {
            let left_ns = self.serve(monotonic_ns());
            let timeout = left_ns.map(|ns| TimeSpec::from_duration(Duration::from_nanos(ns)));
            let mut poll = [PollFd::new(orders.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut poll, timeout, None) {
                Ok(0) | Err(Errno::EINTR) => continue,
                other => other?,
            };
            if !self.take(orders.as_fd())? {
                return Ok(());
            }
        }
    }

    /// Writes to all pipes that are due by `now_ns`; returns the nanoseconds
    /// until the next.
    fn serve(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(next) = self.waiting.first_entry() {
            let (time_ns, _) = *next.key();
            if time_ns > now_ns {
                return Some(time_ns - now_ns);
            }
            // The reader may be gone.
            let _ = nix::unistd::write(next.remove(), b"!");
        }
        None
    }

    /// Reads the waiting orders; false when there will be no more.
    fn take(&mut self, orders: BorrowedFd<'_>) -> Result<bool, Errno> {
        let mut buffer = [0; 8];
        loop {
            match receive(orders, &mut buffer)? {
                Received::Message(8, Some(pipe)) => {
                    let key = (u64::from_ne_bytes(buffer), self.received);
                    self.waiting.insert(key, pipe);
                    self.received += 1;
                }
                // Without the pipe there is no reader to answer.
                Received::Message(..) => {}
                Received::Nothing => return Ok(true),
                Received::End => return Ok(false),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{pair, send};
    use crate::work::pipe::block;
    use std::os::fd::AsRawFd;

    #[test]
    fn pipes_are_written_to_in_order_of_time() {
        let (mine, theirs) = pair().unwrap();
        let mut readers = Vec::new();
        for time_ns in [30u64, 10, 20, 10] {
            let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_NONBLOCK).unwrap();
            send(
                mine.as_fd(),
                &time_ns.to_ne_bytes(),
                Some(writer.as_fd()),
                true,
            )
            .unwrap();
            readers.push(reader);
        }
        let mut peer = Peer::default();
        assert_eq!(peer.take(theirs.as_fd()), Ok(true));
        let written = |readers: &[OwnedFd]| -> Vec<bool> {
            let mut byte = [0];
            let read = |fd| nix::unistd::read(fd, &mut byte) == Ok(1);
            readers.iter().map(read).collect()
        };
        assert_eq!(peer.serve(9), Some(1));
        assert_eq!(written(&readers), [false; 4]);
        assert_eq!(peer.serve(10), Some(10));
        assert_eq!(written(&readers), [false, true, false, true]);
        assert_eq!(peer.serve(99), None);
        assert_eq!(written(&readers), [true, false, true, false]);
        drop(mine);
        assert_eq!(peer.take(theirs.as_fd()), Ok(false));
    }

    #[test]
    fn a_blocked_process_continues_at_its_time_or_fails_with_its_peer() {
        let (mine, theirs) = pair().unwrap();
        let helper = std::thread::spawn(move || {
            let mut peer = Peer::default();
            while peer.waiting.is_empty() {
                assert_eq!(peer.take(theirs.as_fd()), Ok(true));
            }
            while peer.serve(monotonic_ns()).is_some() {}
        });
        let until_ns = monotonic_ns() + 5_000_000;
        block(mine.as_raw_fd(), until_ns).unwrap();
        assert!(monotonic_ns() >= until_ns);
        helper.join().unwrap();
        assert!(block(mine.as_raw_fd(), until_ns).is_err());
    }
}
