//! Who is at the other end of a connection, and what that user may do.

use std::os::fd::AsFd;

use anyhow::{bail, Context, Result};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{geteuid, Uid};

/// The user at the other end, as the kernel noted it when the connection was made: only root can
/// have it note another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    uid: Uid,
}

impl Peer {
    /// The peer of a connected Unix socket.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub(super) fn of(stream: &impl AsFd) -> Result<Self> {
        let credentials =
            getsockopt(stream, PeerCredentials).context("cannot tell the user at the other end")?;
        Ok(Self {
            uid: Uid::from_raw(credentials.uid()),
        })
    }

    /// This process's own user.
    pub(super) fn own() -> Self {
        Self { uid: geteuid() }
    }

    /// Checks that the user may change the scheduler. The mode of the socket lets in only its
    /// owner. This also holds if an administrator lets others in to read statistics.
    ///
    /// # Errors
    ///
    /// It is neither root nor the user that runs the scheduler.
    pub(super) fn check_may_change(self) -> Result<()> {
        if self.uid.is_root() || self.uid == geteuid() {
            return Ok(());
        }
        bail!(
            "user {} may read but not change: only root and the user that runs scx_sfs may",
            self.uid
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn root_and_the_own_user_may_change() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer, Peer::own());
        peer.check_may_change().unwrap();
        let root = Peer {
            uid: Uid::from_raw(0),
        };
        root.check_may_change().unwrap();
        for uid in [1, 1000, 65534, u32::MAX] {
            let uid = Uid::from_raw(uid);
            if uid != geteuid() {
                let said = Peer { uid }.check_may_change().unwrap_err().to_string();
                assert!(said.starts_with(&format!("user {uid} may read")), "{said}");
            }
        }
    }
}
