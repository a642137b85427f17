//! Where hints are sent: a Unix datagram socket, or a UDP port of this machine.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum path length of a Unix socket in bytes: `sun_path` without its final
/// 0.
const MAX_PATH_BYTES: usize = 107;

/// The default address of the scheduler.
pub const DEFAULT_PATH: &str = "/run/scx_sfs/hint.sock";

/// The address of a listener.
///
/// ```
/// use sfs_hint::Address;
/// let unix: Address = "/run/scx_sfs/hint.sock".parse()?;
/// assert_eq!(unix, "unix:/run/scx_sfs/hint.sock".parse()?);
/// let udp: Address = "udp:127.0.0.1:4040".parse()?;
/// assert!("udp:192.0.2.1:4040".parse::<Address>().is_err());
/// # Ok::<(), sfs_hint::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix datagram socket with this path.
    Unix(PathBuf),
    /// A UDP port at a loopback address.
    Udp(SocketAddr),
}

/// An invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Neither a path nor `unix:` nor `udp:`.
    #[error("want a path such as {DEFAULT_PATH}, unix:PATH, udp:127.0.0.1:PORT or udp:[::1]:PORT")]
    Form,
    /// A path that a socket cannot have.
    #[error("a socket path has 1 to {MAX_PATH_BYTES} bytes, none of them 0")]
    Path,
    /// An address that other machines can reach.
    #[error("{0} is not a loopback address; hints are accepted from this machine only")]
    NotLoopback(SocketAddr),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(address) = text.strip_prefix("udp:") {
            let address = address.parse().map_err(|_| AddressError::Form)?;
            return Self::udp(address);
        }
        let path = match text.strip_prefix("unix:") {
            Some(path) => path,
            None if text.starts_with(['/', '.']) => text,
            None => return Err(AddressError::Form),
        };
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(AddressError::Path);
        }
        Ok(Self::Unix(path.into()))
    }
}

impl Address {
    /// Returns the address of a UDP port.
    ///
    /// # Errors
    ///
    /// The address is not a loopback address. IPv4 addresses mapped to IPv6 are
    /// refused, too.
    pub fn udp(address: SocketAddr) -> Result<Self, AddressError> {
        if !address.ip().is_loopback() {
            return Err(AddressError::NotLoopback(address));
        }
        Ok(Self::Udp(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_a_round_trip() {
        for text in [
            "/run/x.sock",
            "./x.sock",
            "udp:127.0.0.1:1",
            "udp:127.9.9.9:9",
            "udp:[::1]:4040",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn only_this_machine_is_accepted() {
        for text in [
            "udp:0.0.0.0:4040",
            "udp:192.0.2.1:4040",
            "udp:[::]:4040",
            "udp:[2001:db8::1]:4040",
            "udp:[::ffff:127.0.0.1]:4040",
        ] {
            let said = text.parse::<Address>().unwrap_err().to_string();
            assert!(said.contains("is not a loopback address"), "{text}: {said}");
        }
        let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        for text in [
            "",
            "hint.sock",
            "@abstract",
            "tcp:127.0.0.1:1",
            "udp:localhost:1",
            "udp:127.0.0.1",
            "udp:127.0.0.1:65536",
            "unix:",
            "unix:a\0b",
            long.as_str(),
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?} was accepted");
        }
    }
}
