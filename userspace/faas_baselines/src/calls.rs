//! System calls that nix lacks.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket of the kernel's connector that has joined `group`, with `room` bytes for messages
/// that wait.
///
/// # Errors
/// EPROTONOSUPPORT if the kernel has none, EPERM without the right to.
pub fn connector(group: u32, room: usize) -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_CONNECTOR) };
    let socket = Errno::result(socket)?;
    // SAFETY: the file is open, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // With less room some reports may be lost, which is noticed.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &room);
    // SAFETY: plain numbers, for which zero is a value.
    let mut address: libc::sockaddr_nl = unsafe { zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = group;
    let bytes = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: the address is alive and of the size given.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) };
    Errno::result(bound)?;
    Ok(socket)
}
