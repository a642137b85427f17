//! Who may send hints, and how many, with real sockets.

// Each test program uses only a part of it.
#[allow(dead_code)]
mod bench;

use std::io::{IoSlice, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use bench::Bench;
use nix::errno::Errno;
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags};
use nix::unistd::{geteuid, Uid};
use sfs_hint::{Form, Hint};
use sfs_listener::{HintListener, HintOptions, SenderGroup};
use sfs_skip::skip;

/// Starts `program` as user `uid`; it has sent a hint for process 1000 by the
/// time this returns.
fn sends_as(uid: u32, bench: &Bench, program: &str) -> Child {
    let socket = bench.raw();
    let mut command = Command::new("/usr/bin/env");
    command.args(program.split(' ')).uid(uid).gid(uid);
    // SAFETY: only a system call between fork and exec.
    unsafe {
        command.pre_exec(move || socket.send(b"1000").map(drop));
    }
    command.spawn().unwrap()
}

const NO_OTHER_USERS: &str = "only root can send as another user";

#[test]
fn other_users_are_denied_unless_they_are_named() {
    if !geteuid().is_root() {
        skip!(NO_OTHER_USERS);
    }
    let named = |uids: &[u32]| HintOptions {
        hint_mode: 0o666,
        hint_allow_uid: uids.iter().copied().map(Uid::from_raw).collect(),
        ..HintOptions::default()
    };
    // The last one stands for users without an id here.
    for (options, uid, taken) in [
        (named(&[]), 0, true),
        (named(&[]), 12, false),
        (named(&[11, 12]), 12, true),
        (named(&[11, 12]), 13, false),
        (named(&[65534]), 65534, false),
    ] {
        let mut bench = Bench::unix_with(&options);
        sends_as(uid, &bench, "true").wait().unwrap();
        let counters = bench.drain();
        let expected = (u64::from(taken), u64::from(!taken));
        assert_eq!((counters.received, counters.denied), expected, "user {uid}");
        assert_eq!(bench.given.len() as u64, expected.0);
    }
}

#[test]
fn processes_of_other_groups_are_denied() {
    if !geteuid().is_root() {
        skip!(NO_OTHER_USERS);
    }
    let options = HintOptions {
        hint_allow_cgroup: vec![SenderGroup::parse("no/such/group").unwrap()],
        ..HintOptions::default()
    };
    let mut bench = Bench::unix_with(&options);
    let mut child = sends_as(12, &bench, "sleep 1000");
    let counters = bench.drain();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((counters.received, counters.denied), (0, 1));
    // Allowed users need no group.
    sends_as(0, &bench, "true").wait().unwrap();
    assert_eq!(bench.drain().received, 1);
}

/// The listener must close attached descriptors, or it would run out of them.
#[test]
fn descriptors_attached_to_a_hint_are_closed() {
    let group = SenderGroup::parse("no/such/group").unwrap();
    for hint_allow_cgroup in [vec![], vec![group]] {
        let options = HintOptions {
            hint_allow_cgroup,
            ..HintOptions::default()
        };
        let mut bench = Bench::unix_with(&options);
        let sender = bench.raw();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fds = [writer.as_raw_fd(); 3];
        let rights = [ControlMessage::ScmRights(&fds)];
        let text = [IoSlice::new(b"1000")];
        let sent = sendmsg::<()>(sender.as_raw_fd(), &text, &rights, MsgFlags::empty(), None);
        // From Linux 6.16 on, the send fails instead.
        if sent != Err(Errno::EPERM) {
            sent.unwrap();
            assert_eq!(bench.drain().denied, 1);
        }
        drop(writer);
        // End of file: the other end of the pipe is closed.
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
        sender.send(b"1001").unwrap();
        assert_eq!(bench.drain().received, 1);
    }
}

#[test]
fn a_sender_has_a_rate() {
    let options = HintOptions {
        hint_rate: 3,
        ..HintOptions::default()
    };
    let mut bench = Bench::unix_with(&options);
    let mut client = bench.client(Form::Binary);
    let hints: Vec<Hint> = (1000..1010).map(Hint::of).collect();
    assert_eq!(client.send_all(&hints).unwrap(), 10);
    let counters = bench.drain();
    assert_eq!((counters.received, counters.limited), (3, 7));
}

#[test]
fn udp_needs_an_option() {
    let any_port = "udp:127.0.0.1:0".parse().unwrap();
    let refused = HintListener::listen(&any_port, &HintOptions::default());
    let said = format!("{:#}", refused.err().unwrap());
    assert!(said.contains("--hint-allow-udp"), "{said}");
    assert_eq!(said.lines().count(), 1);
}
