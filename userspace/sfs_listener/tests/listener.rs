//! The listener with real sockets.

// Each test program uses only a part of it.
#[allow(dead_code)]
mod bench;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use bench::{clock, over_udp, Bench};
use nix::unistd::{geteuid, Gid, Uid};
use sfs_bpf::kernel::KernelHint;
use sfs_hint::process::started_ticks;
use sfs_hint::{Address, Client, Delivery, Form, Hint, MAX_DATAGRAM_BYTES};
use sfs_listener::{HintCounters, HintListener, HintOptions, Owner};
use sfs_skip::skip;

fn listen(path: &Path) -> Result<HintListener> {
    HintListener::listen(&Address::Unix(path.to_owned()), &HintOptions::default())
}

#[test]
fn a_hint_reaches_the_kernel_half() {
    let mut bench = Bench::unix();
    let hint = Hint {
        pid: 4242,
        arrived_at_ns: Some(clock().wall_offset_ns + 999_000_000_000),
        function: Some("resize".to_owned()),
        service_ns: Some(12_000_000),
        started_ticks: None,
    };
    let _ = bench.client(Form::Binary).send(&hint).unwrap();
    let _ = bench.client(Form::Text).send(&Hint::of(4243)).unwrap();
    let counters = bench.drain();
    assert_eq!((counters.received, counters.applied), (2, 2));
    assert_eq!(counters.service_times_ignored, 1);
    let [first, second] = bench.given[..] else {
        panic!("{:?}", bench.given)
    };
    assert_eq!(bench.listener.function_name(first.function), Some("resize"));
    assert_eq!(
        first,
        KernelHint {
            pid: 4242,
            flags: 0,
            arrived_at: 999_000_000_000,
            function: first.function,
            // The option for them is not given.
            service_ns: 0,
        }
    );
    assert_eq!(
        second,
        KernelHint {
            pid: 4243,
            ..KernelHint::default()
        }
    );
}

/// This process exists; a reaped child does not.
#[test]
fn a_start_time_must_be_that_of_the_process() {
    let mut bench = Bench::unix();
    let this = i32::try_from(std::process::id()).unwrap();
    let started = started_ticks(this).unwrap();
    let mut child = Command::new("true").spawn().unwrap();
    let gone = i32::try_from(child.id()).unwrap();
    child.wait().unwrap();
    for (pid, started_ticks) in [(this, started), (this, started + 1), (gone, started)] {
        for form in [Form::Text, Form::Binary] {
            let hint = Hint {
                started_ticks: Some(started_ticks),
                ..Hint::of(pid)
            };
            assert_eq!(bench.client(form).send(&hint).unwrap(), Delivery::Sent);
        }
    }
    let counters = bench.drain();
    assert_eq!((counters.received, counters.stale), (6, 2));
    assert_eq!(counters.dead + counters.stale + bench.given.len() as u64, 6);
    assert!(bench.given.iter().all(|hint| hint.pid == this));
    assert_eq!(bench.given.len(), 2);
}

#[test]
fn without_hints_nothing_is_done() {
    let mut bench = Bench::unix();
    assert_eq!(bench.drain(), HintCounters::default());
}

#[test]
fn problems_are_counted_by_kind_and_affect_no_other_hint() {
    let mut bench = Bench::unix();
    let sender = bench.raw();
    for datagram in [
        &b"pid=1000\nnonsense\npid=1001"[..],
        b"",
        b"\xf5\x01\x01\x00\x00",
        &[b' '; MAX_DATAGRAM_BYTES + 1],
        &[b'1'; 60_000],
        b"1002 1",
        b"1003 1001500000",
        b"50\n5\n",
    ] {
        sender.send(datagram).unwrap();
    }
    let counters = bench.drain();
    assert_eq!(
        counters,
        HintCounters {
            received: 6,
            applied: 2,
            stale: 2,
            foreign: 1,
            dead: 1,
            malformed: 5,
            ..HintCounters::default()
        }
    );
    let pids: Vec<i32> = bench.given.iter().map(|hint| hint.pid).collect();
    assert_eq!(pids, [1000, 1001, 50, 5]);
}

#[test]
fn a_failing_kernel_half_loses_only_its_batch() {
    let mut bench = Bench::unix();
    let mut client = bench.client(Form::Text);
    for pid in [100, 101] {
        let _ = client.send(&Hint::of(pid)).unwrap();
        let mut fail = |_: &[KernelHint]| anyhow::bail!("not now");
        bench.listener.drain(clock(), &mut fail).unwrap();
    }
    let _ = client.send(&Hint::of(102)).unwrap();
    let counters = bench.drain();
    assert_eq!(
        (counters.received, counters.failed, counters.applied),
        (3, 2, 1)
    );
    assert!(bench.listener.poll_fd().is_some());
}

#[test]
fn hints_over_udp_come_in_batches() {
    let mut bench = Bench::udp();
    let mut client = bench.client(Form::Binary);
    let hints: Vec<Hint> = (1000..1300).map(Hint::of).collect();
    assert_eq!(client.send_all(&hints).unwrap(), 300);
    assert_eq!(bench.drain().applied, 300);
    let pids: Vec<i32> = bench.given.iter().map(|hint| hint.pid).collect();
    assert_eq!(pids, (1000..1300).collect::<Vec<_>>());
}

#[test]
fn a_flood_is_read_in_portions() {
    let mut bench = Bench::udp();
    let mut client = bench.client(Form::Binary);
    let hints: Vec<Hint> = (1000..11_000).map(Hint::of).collect();
    assert_eq!(client.send_all(&hints).unwrap(), 10_000);
    let first = bench.drain();
    assert!((4096..10_000).contains(&first.received), "{first:?}");
    let mut rounds = 1;
    while bench.drain().received < 10_000 {
        rounds += 1;
        assert!(rounds < 10, "{:?}", bench.listener.counters());
    }

    // Datagrams without hints count, too.
    for _ in 0..600 {
        assert_eq!(client.send(&Hint::of(1)).unwrap(), Delivery::Sent);
    }
    let before = bench.listener.counters().received;
    assert_eq!(bench.drain().received - before, 256);
}

#[test]
fn drops_by_the_system_are_counted() {
    let mut bench = Bench::udp();
    let mut client = bench.client(Form::Text);
    let sent = 100_000;
    for _ in 0..sent {
        let _ = client.send(&Hint::of(1000)).unwrap();
    }
    let mut seen = 0;
    while bench.drain().received > seen {
        seen = bench.listener.counters().received;
    }
    assert!(seen < sent, "an endless buffer");
    // The kernel reports the number of drops with the next datagram that
    // arrives.
    let _ = client.send(&Hint::of(1000)).unwrap();
    let counters = bench.drain();
    assert_eq!(counters.received, seen + 1);
    assert_eq!(counters.dropped, sent - seen);
}

#[test]
fn the_socket_is_private_unless_told_otherwise() {
    let bench = Bench::unix();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.path()), 0o600);

    let other = bench.dir.path().join("other.sock");
    let options = HintOptions {
        hint_mode: 0o666,
        ..HintOptions::default()
    };
    let _listener = HintListener::listen(&Address::Unix(other.clone()), &options).unwrap();
    assert_eq!(mode(&other), 0o666);
}

#[test]
fn the_socket_can_be_given_away() {
    if !geteuid().is_root() {
        skip!("only root can give files away");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let options = HintOptions {
        hint_owner: Some(Owner {
            user: Some(Uid::from_raw(65534)),
            group: Some(Gid::from_raw(12)),
        }),
        ..HintOptions::default()
    };
    let _listener = HintListener::listen(&Address::Unix(path.clone()), &options).unwrap();
    let file = fs::metadata(&path).unwrap();
    assert_eq!((file.uid(), file.gid()), (65534, 12));
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_socket_comes_and_goes_with_its_folder_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/hint.sock");
    let listener = listen(&path).unwrap();
    assert!(fs::metadata(&path).unwrap().file_type().is_socket());
    drop(listener);
    assert!(!path.exists());
    assert!(path.parent().unwrap().is_dir());
    let deep = dir.path().join("a/b/hint.sock");
    assert!(listen(&deep).is_err());
}

#[test]
fn a_socket_in_use_is_not_replaced() {
    let bench = Bench::unix();
    let said = format!("{:#}", listen(&bench.path()).err().unwrap());
    assert!(said.contains("another program listens there"), "{said}");
    assert!(bench.path().exists());

    let file = bench.dir.path().join("file");
    fs::write(&file, "precious").unwrap();
    let said = format!("{:#}", listen(&file).err().unwrap());
    assert!(said.contains("not a socket"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    // A socket of another kind belongs to another program.
    let stream = bench.dir.path().join("stream");
    let _in_use = UnixListener::bind(&stream).unwrap();
    assert!(listen(&stream).is_err());
    assert!(stream.exists());
}

#[test]
fn the_socket_of_a_dead_loader_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    drop(UnixDatagram::bind(&path).unwrap());
    assert!(path.exists());
    let _listener = listen(&path).unwrap();
    let mut client = Client::connect(&Address::Unix(path), Form::Text).unwrap();
    assert_eq!(client.send(&Hint::of(1)).unwrap(), Delivery::Sent);
}

#[test]
fn the_socket_of_a_successor_is_left_alone() {
    let bench = Bench::unix();
    let path = bench.path();
    fs::remove_file(&path).unwrap();
    let successor = UnixDatagram::bind(&path).unwrap();
    let Bench { listener, dir, .. } = bench;
    drop(listener);
    assert!(path.exists());
    drop((successor, dir));
}

#[test]
fn a_udp_port_in_use_is_an_error() {
    let bench = Bench::udp();
    let again = HintListener::listen(bench.listener.address(), &over_udp());
    let said = format!("{:#}", again.err().unwrap());
    assert!(said.contains("cannot listen for hints at udp:127.0.0.1:"));
}

#[test]
fn only_loopback_is_bound() {
    let everywhere = Address::Udp("0.0.0.0:0".parse().unwrap());
    let refused = HintListener::listen(&everywhere, &over_udp());
    let said = format!("{:#}", refused.err().unwrap());
    assert!(said.contains("not a loopback address"), "{said}");
}
