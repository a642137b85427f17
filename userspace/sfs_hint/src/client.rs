//! A client that sends hints and never blocks.
//!
//! A scheduler must not delay its platform. If the socket has no room, the hint
//! is therefore dropped and the caller is told; the invocation is then
//! scheduled like one without a hint.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;

use crate::address::Address;
use crate::datagram::{Datagram, Form};
use crate::error::SendError;
use crate::hint::Hint;

/// The outcome of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Delivery {
    /// The system has accepted the hint. Over UDP it may still be dropped if
    /// the listener does not keep up.
    Sent,
    /// The socket was full.
    Dropped,
}

/// A connection to the scheduler.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    address: Address,
    datagram: Datagram,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

impl Client {
    /// Connects to the listener at `address`; hints are sent in `form`.
    ///
    /// # Errors
    ///
    /// Nobody listens at that path, or the system refuses. Over UDP only the
    /// first sends show whether anybody listens.
    pub fn connect(address: &Address, form: Form) -> io::Result<Self> {
        Ok(Self {
            socket: Socket::connect(address)?,
            address: address.clone(),
            datagram: Datagram::new(form),
        })
    }

    /// Sends one hint.
    ///
    /// # Errors
    ///
    /// The hint is invalid, or nobody listens (any longer). The client remains
    /// usable: it reconnects when there is a listener again.
    pub fn send(&mut self, hint: &Hint) -> Result<Delivery, SendError> {
        self.datagram.clear();
        self.datagram.push(hint)?;
        Ok(self.flush()?)
    }

    /// Sends `hints` in as few datagrams as possible. Returns how many were
    /// sent, counted from the first; the others were dropped because the socket
    /// was full.
    ///
    /// # Errors
    ///
    /// A hint is invalid, and none was sent; or nobody listens (any longer),
    /// and it is unknown how many were sent.
    pub fn send_all(&mut self, hints: &[Hint]) -> Result<usize, SendError> {
        for hint in hints {
            hint.check()?;
        }
        self.datagram.clear();
        let mut sent = 0;
        for hint in hints {
            if self.datagram.push(hint)? {
                continue;
            }
            if self.flush()? == Delivery::Dropped {
                return Ok(sent);
            }
            sent += self.datagram.len();
            self.datagram.clear();
            self.datagram.push(hint)?;
        }
        if !self.datagram.is_empty() && self.flush()? == Delivery::Sent {
            sent += self.datagram.len();
        }
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<Delivery> {
        let mut result = self.socket.send(self.datagram.bytes());
        if self.socket.outlived_its_peer(&result) {
            self.socket = Socket::connect(&self.address)?;
            result = self.socket.send(self.datagram.bytes());
        }
        match result {
            Ok(()) => Ok(Delivery::Sent),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Delivery::Dropped),
            Err(error) => Err(error),
        }
    }
}

impl Socket {
    fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Unix(socket))
            }
            Address::Udp(to) => {
                let from: SocketAddr = match to {
                    SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
                };
                let socket = UdpSocket::bind(from)?;
                socket.connect(to)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Udp(socket))
            }
        }
    }

    /// Whether the listener is gone. A Unix socket stays connected to the
    /// listener that it found until a send fails. A UDP socket is connected to
    /// the port, whoever owns it; its errors are those of an earlier send.
    fn outlived_its_peer(&self, result: &io::Result<()>) -> bool {
        let gone = [ErrorKind::ConnectionRefused, ErrorKind::NotConnected];
        matches!(self, Self::Unix(_))
            && matches!(result, Err(error) if gone.contains(&error.kind()))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.send(bytes),
            Self::Udp(socket) => socket.send(bytes),
        }
        .map(|_| ())
    }
}
