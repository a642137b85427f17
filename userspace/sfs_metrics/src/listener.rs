//! Sockets: those that listen, and connections.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Address;

/// A socket that listens. It never blocks.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at `address`; a Unix socket gets this mode.
    ///
    /// # Errors
    ///
    /// The address is in use, or not this machine's.
    pub fn open(address: &Address, mode: u32) -> Result<Self> {
        let opened = match address {
            Address::Tcp(address) => TcpListener::bind(address)
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .map(Self::Tcp)
                .map_err(with_remedy),
            Address::Unix(path) => open_unix(path, mode).map(Self::Unix),
        };
        opened.with_context(|| format!("cannot serve metrics at {address}"))
    }

    /// Returns the next connection, if there is one.
    ///
    /// # Errors
    ///
    /// There are no more descriptors.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        let accepted = match self {
            Self::Tcp(listener) => listener.accept().map(|(one, _)| Connection::Tcp(one)),
            Self::Unix(listener) => listener.accept().map(|(one, _)| Connection::Unix(one)),
        };
        match accepted {
            Ok(one) => Ok(Some(one)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            // The client has gone again.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Adds what to do if this process may have no network, as the service of the package.
fn with_remedy(error: io::Error) -> anyhow::Error {
    let unsupported = error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT);
    let error = anyhow::Error::new(error);
    if !unsupported {
        return error;
    }
    error.context(
        "the service has no network: name a Unix socket below /run/scx_sfs, or allow a port by \
         `systemctl edit scx_sfs` (docs/monitoring.md)",
    )
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Nobody can connect before the mode is set: a new name takes the place of `path` only then.
fn open_unix(path: &Path, mode: u32) -> Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            anyhow::bail!("there is a file that is no socket; remove it, or name another path");
        }
        _ => {}
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    match fs::remove_file(new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let listener = UnixListener::bind(new)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(new, fs::Permissions::from_mode(mode))?;
    fs::rename(new, path)?;
    Ok(listener)
}

/// A connection.
pub enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    pub fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    pub fn set_write_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_write_timeout(Some(limit)),
        }
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    /// Closes it in both directions. It may be closed already.
    pub fn hang_up(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
