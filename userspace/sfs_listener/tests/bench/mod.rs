//! A listener for hints at its own socket, with a kernel half that only
//! records.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use sfs_bpf::kernel::{KernelHint, Verdicts, KERNEL_BATCH};
use sfs_hint::{Address, Client, Form};
use sfs_listener::{Clock, HintCounters, HintListener, HintOptions};
use tempfile::TempDir;

/// A socket in its own folder, and its client.
pub struct Bench {
    pub dir: TempDir,
    pub listener: HintListener,
    pub given: Vec<KernelHint>,
}

impl Bench {
    pub fn unix() -> Self {
        Self::unix_with(&HintOptions::default())
    }

    pub fn unix_with(options: &HintOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = Address::Unix(dir.path().join("hint.sock"));
        let listener = HintListener::listen(&path, options).unwrap();
        Self {
            dir,
            listener,
            given: Vec::new(),
        }
    }

    pub fn udp() -> Self {
        let any_port = "udp:127.0.0.1:0".parse().unwrap();
        let listener = HintListener::listen(&any_port, &over_udp()).unwrap();
        Self {
            dir: tempfile::tempdir().unwrap(),
            listener,
            given: Vec::new(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("hint.sock")
    }

    pub fn client(&self, form: Form) -> Client {
        Client::connect(self.listener.address(), form).unwrap()
    }

    pub fn raw(&self) -> UnixDatagram {
        let socket = UnixDatagram::unbound().unwrap();
        socket.connect(self.path()).unwrap();
        socket
    }

    /// Drains once; processes below 100 are foreign, those below 10 dead.
    pub fn drain(&mut self) -> HintCounters {
        let given = &mut self.given;
        let mut apply = |batch: &[KernelHint]| {
            assert!((1..=KERNEL_BATCH).contains(&batch.len()));
            given.extend(batch);
            Ok(verdicts(batch))
        };
        self.listener.drain(clock(), &mut apply).unwrap();
        self.listener.counters()
    }
}

pub fn over_udp() -> HintOptions {
    HintOptions {
        hint_allow_udp: true,
        ..HintOptions::default()
    }
}

/// 1,000 s after boot, some day in 2026.
pub fn clock() -> Clock {
    Clock {
        now_ns: 1_000_000_000_000,
        wall_offset_ns: 1_780_000_000_000_000_000,
    }
}

pub fn verdicts(batch: &[KernelHint]) -> Verdicts {
    let count = |range: std::ops::Range<i32>| {
        let of_these = batch.iter().filter(|hint| range.contains(&hint.pid));
        of_these.count() as u64
    };
    Verdicts {
        applied: count(100..i32::MAX),
        foreign: count(10..100),
        dead: count(0..10),
        stale: 0,
    }
}
