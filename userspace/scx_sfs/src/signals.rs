//! SIGINT and SIGTERM as a file descriptor, so that the loader can wait for them and for the
//! kernel half at the same time.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end the loader.
pub struct Signals {
    fd: SignalFd,
}

impl Signals {
    /// Blocks the signals, for this thread and the threads it starts, and returns their
    /// descriptor.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or descriptors have run out.
    pub fn block() -> Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.thread_block().context("cannot block signals")?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("cannot create a descriptor for signals")?;
        Ok(Self { fd })
    }

    /// Waits for a signal, at most for `timeout`. Returns whether one arrived.
    ///
    /// # Errors
    ///
    /// The descriptor cannot be polled.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait for signals"),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
