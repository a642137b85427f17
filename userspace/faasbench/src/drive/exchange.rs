//! One request and its answer, on its own non-blocking connection.

use super::answer::{read, Answer, Reading};
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{
    connect, getsockopt, socket, sockopt, AddressFamily, SockFlag, SockType, SockaddrStorage,
};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The state of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It waits until its connection is ready for these events.
    Wants(PollFlags),
    /// The answer is complete.
    Done(Answer),
    /// The connection failed.
    Failed(Errno),
}

/// A request that is not yet answered.
#[derive(Debug)]
pub struct Exchange {
    stream: TcpStream,
    connected: bool,
    request: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

impl Exchange {
    /// Begins to connect to `address`.
    ///
    /// # Errors
    /// If that fails at once.
    pub fn begin(address: SocketAddr, request: Vec<u8>) -> Result<Self, Errno> {
        let family = if address.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None)?;
        let connected = match connect(fd.as_raw_fd(), &SockaddrStorage::from(address)) {
            Ok(()) => true,
            Err(Errno::EINPROGRESS) => false,
            Err(errno) => return Err(errno),
        };
        Ok(Self {
            stream: TcpStream::from(fd),
            connected,
            request,
            sent: 0,
            received: Vec::new(),
        })
    }

    /// Its connection, to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Does what is possible without waiting. Call it again only when the
    /// connection is ready for the requested events.
    pub fn advance(&mut self) -> Progress {
        match self.step() {
            Ok(progress) => progress,
            Err(error) => Progress::Failed(errno(&error)),
        }
    }

    fn step(&mut self) -> io::Result<Progress> {
        if !self.connected {
            match getsockopt(&self.stream, sockopt::SocketError)? {
                0 => self.connected = true,
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if waits(&error) => return Ok(Progress::Wants(PollFlags::POLLOUT)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(count) => {
                    self.received.extend(&buffer[..count]);
                    match read(&self.received, count == 0) {
                        Reading::Partial => {}
                        Reading::Complete(answer) => return Ok(Progress::Done(answer)),
                        Reading::Broken => return Ok(Progress::Failed(Errno::EBADMSG)),
                    }
                }
                Err(error) if waits(&error) => return Ok(Progress::Wants(PollFlags::POLLIN)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether it only has to wait. A connection in progress returns "not
/// connected" to the first write.
fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
