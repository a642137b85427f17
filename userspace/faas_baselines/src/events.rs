//! New and ended processes, as the kernel reports them (the process connector, `CN_PROC`).
//!
//! A report costs one wake-up of the reader, and comes at once. So nothing is lost between two
//! scans of /proc, and nothing is scanned.

use crate::calls;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::socket::{recv, send, MsgFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Sizes of the headers in front of an event (`nlmsghdr`, `cn_msg`).
const NETLINK: usize = 16;
const CONNECTOR: usize = 20;
/// Where an event's own fields begin.
const EVENT: usize = NETLINK + CONNECTOR;
/// Of `linux/connector.h` and `linux/cn_proc.h`.
const CN_IDX_PROC: u32 = 1;
const CN_VAL_PROC: u32 = 1;
const LISTEN: u32 = 1;
const FORK: u32 = 1;
const EXIT: u32 = 0x8000_0000;
/// `NLMSG_DONE` of `linux/netlink.h`.
const DONE: u16 = 3;
/// Room for reports that wait, in bytes: some ten thousand.
const ROOM: usize = 16 << 20;

/// What happened to a process. Threads are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A process was forked.
    Forked {
        /// It.
        pid: i32,
        /// The process that forked it.
        parent: i32,
        /// When, on the monotonic clock.
        at_ns: u64,
    },
    /// A process has ended.
    Ended {
        /// It.
        pid: i32,
    },
}

impl Event {
    /// The event in a message of the connector, if it is one of these.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = message.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let pid = |at: usize| word(at).map(|word| word as i32);
        if (word(NETLINK)?, word(NETLINK + 4)?) != (CN_IDX_PROC, CN_VAL_PROC) {
            return None;
        }
        let at_ns = message.get(EVENT + 8..EVENT + 16)?;
        let at_ns = u64::from_ne_bytes(at_ns.try_into().ok()?);
        let fields = EVENT + 16;
        match word(EVENT)? {
            FORK => {
                let (parent, child) = (pid(fields + 4)?, pid(fields + 8)?);
                let is_process = child == pid(fields + 12)?;
                is_process.then_some(Self::Forked {
                    pid: child,
                    parent,
                    at_ns,
                })
            }
            EXIT => {
                let ended = pid(fields)?;
                (ended == pid(fields + 4)?).then_some(Self::Ended { pid: ended })
            }
            _ => None,
        }
    }
}

/// A subscription to the reports.
#[derive(Debug)]
pub struct Events {
    socket: OwnedFd,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// An event.
    Event(Event),
    /// A report of something else.
    Other,
    /// The kernel has dropped some, for lack of room.
    Lost,
    /// None are waiting.
    Nothing,
}

impl Events {
    /// Subscribes.
    ///
    /// # Errors
    /// If the kernel has no process connector, or refuses: it takes root, in the first
    /// namespaces of processes and users.
    pub fn subscribe() -> Result<Self> {
        let cannot = "cannot subscribe to the kernel's reports of processes (CONFIG_PROC_EVENTS); \
            this takes root, and no container";
        let socket = calls::connector(CN_IDX_PROC, ROOM).context(cannot)?;
        let flags = MsgFlags::empty();
        send(socket.as_raw_fd(), &subscription(), flags).context(cannot)?;
        Ok(Self { socket })
    }

    /// Reads the next report, if one is waiting.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn read(&self) -> Result<Read> {
        let mut buffer = [0; 512];
        match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(bytes) => Ok(Event::parse(&buffer[..bytes]).map_or(Read::Other, Read::Event)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Read::Nothing),
            Err(Errno::ENOBUFS) => Ok(Read::Lost),
            Err(errno) => Err(errno).context("cannot read the kernel's reports of processes"),
        }
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The message that asks for reports.
fn subscription() -> Vec<u8> {
    let length = (EVENT + 4) as u32;
    let mut message = Vec::with_capacity(EVENT + 4);
    message.extend(length.to_ne_bytes());
    message.extend(DONE.to_ne_bytes());
    message.extend([0; 2 + 4 + 4]); // flags, sequence, port
    message.extend(CN_IDX_PROC.to_ne_bytes());
    message.extend(CN_VAL_PROC.to_ne_bytes());
    message.extend([0; 4 + 4]); // sequence, acknowledgement
    message.extend(4u16.to_ne_bytes());
    message.extend([0; 2]);
    message.extend(LISTEN.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as the kernel makes it.
    fn message(what: u32, fields: &[u32]) -> Vec<u8> {
        let mut message = subscription();
        message.truncate(EVENT);
        message.extend(what.to_ne_bytes());
        message.extend(3u32.to_ne_bytes());
        message.extend(77u64.to_ne_bytes());
        fields
            .iter()
            .for_each(|field| message.extend(field.to_ne_bytes()));
        message
    }

    #[test]
    fn forks_and_ends_of_processes_are_found() {
        let forked = Event::Forked {
            pid: 12,
            parent: 9,
            at_ns: 77,
        };
        assert_eq!(Event::parse(&message(FORK, &[10, 9, 12, 12])), Some(forked));
        let ended = message(EXIT, &[12, 12, 0, 17, 9, 9]);
        assert_eq!(Event::parse(&ended), Some(Event::Ended { pid: 12 }));
    }

    #[test]
    fn threads_and_other_events_are_left_out() {
        assert_eq!(Event::parse(&message(FORK, &[9, 9, 12, 9])), None);
        assert_eq!(Event::parse(&message(EXIT, &[12, 9, 0, 0, 1, 1])), None);
        assert_eq!(Event::parse(&message(2, &[12, 12])), None);
    }

    #[test]
    fn a_message_that_is_cut_off_is_none() {
        let whole = message(FORK, &[10, 9, 12, 12]);
        for bytes in 0..whole.len() {
            assert_eq!(Event::parse(&whole[..bytes]), None, "{bytes}");
        }
        let mut other = whole;
        other[NETLINK] = 9;
        assert_eq!(Event::parse(&other), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_parsed_or_not(bytes: Vec<u8>) {
            let _ = Event::parse(&bytes);
        }
    }
}
