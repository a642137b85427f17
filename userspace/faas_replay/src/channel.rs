//! Messages between the processes of a replay, with attached open files.

use nix::errno::Errno;
use nix::sys::socket::{
    recvmsg, sendmsg, socketpair, AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags,
    SockFlag, SockType,
};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Two connected ends that preserve message boundaries. A reader sees end of
/// file when the last writer is gone. Neither stays open across exec.
///
/// # Errors
/// If there are too many open files.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SockFlag::SOCK_CLOEXEC;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// Sends `message` with `file` attached. With `now`, fails with EAGAIN instead
/// of waiting for space.
///
/// # Errors
/// Like sendmsg; no SIGPIPE.
pub fn send(
    to: BorrowedFd<'_>,
    message: &[u8],
    file: Option<BorrowedFd<'_>>,
    now: bool,
) -> Result<(), Errno> {
    let fds: Vec<_> = file.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let control = if fds.is_empty() { &[][..] } else { &rights };
    let mut flags = MsgFlags::MSG_NOSIGNAL;
    flags.set(MsgFlags::MSG_DONTWAIT, now);
    let parts = [IoSlice::new(message)];
    sendmsg::<()>(to.as_raw_fd(), &parts, control, flags, None).map(drop)
}

/// The result of [`receive`].
#[derive(Debug)]
pub enum Received {
    /// A message of this many bytes, and its attached file.
    Message(usize, Option<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The last sender is gone.
    End,
}

/// Receives a message into `buffer`, without waiting for one.
///
/// # Errors
/// Like recvmsg.
pub fn receive(from: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut control = nix::cmsg_space!([libc::c_int; 1]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = match recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut control), flags) {
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Received::Nothing),
        Err(Errno::ECONNRESET) => return Ok(Received::End),
        other => other?,
    };
    let mut file = None;
    for one in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = one {
            // SAFETY: the kernel has just opened these for us, and we take
            // each of them once.
            let owned = |fd| unsafe { OwnedFd::from_raw_fd(fd) };
            file = fds.into_iter().map(owned).next_back();
        }
    }
    Ok(match message.bytes {
        0 => Received::End,
        bytes => Received::Message(bytes, file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn messages_come_with_their_files_and_then_the_end() {
        let (mine, theirs) = pair().unwrap();
        let mut buffer = [0; 16];
        let nothing = receive(theirs.as_fd(), &mut buffer).unwrap();
        assert!(matches!(nothing, Received::Nothing));
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(mine.as_fd(), b"pipe", Some(writer.as_fd()), true).unwrap();
        send(mine.as_fd(), b"plain", None, true).unwrap();
        drop((mine, writer));
        let Received::Message(4, Some(file)) = receive(theirs.as_fd(), &mut buffer).unwrap() else {
            panic!("no message with a file");
        };
        nix::unistd::write(&file, b"!").unwrap();
        drop(file);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "!");
        let plain = receive(theirs.as_fd(), &mut buffer).unwrap();
        assert!(matches!(plain, Received::Message(5, None)));
        assert_eq!(&buffer[..5], b"plain");
        let end = receive(theirs.as_fd(), &mut buffer).unwrap();
        assert!(matches!(end, Received::End));
    }

    #[test]
    fn a_full_channel_is_reported() {
        let (mine, theirs) = pair().unwrap();
        let fill = || send(mine.as_fd(), &[0; 64], None, true);
        let full = (0..100_000).find_map(|_| fill().err());
        assert_eq!(full, Some(Errno::EAGAIN));
        drop(theirs);
        // First the loss of messages in flight, then that nobody is there.
        assert_eq!(fill(), Err(Errno::ECONNRESET));
        assert_eq!(fill(), Err(Errno::EPIPE));
    }
}
