//! Hints: the process that is about to serve a function's request, and when the
//! request arrived. One text datagram each, such as `pid=1234
//! arrival_us=86400000123 function=resize`.

use anyhow::{Context, Result};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The destination of hints.
#[derive(Debug)]
pub struct Hints {
    socket: UnixDatagram,
    path: PathBuf,
    lost: AtomicU64,
}

impl Hints {
    /// Sends to the Unix datagram socket `path`, which need not exist yet.
    ///
    /// # Errors
    /// If no socket can be made.
    pub fn to(path: PathBuf) -> Result<Self> {
        let socket = UnixDatagram::unbound().context("cannot make a socket for hints")?;
        // A scheduler that does not listen must not delay requests.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            path,
            lost: AtomicU64::new(0),
        })
    }

    /// Tells that process `pid` is about to serve a request for `function` that
    /// arrived at `arrived_ns` on the monotonic clock. Hints that cannot be
    /// sent are dropped; the first drop is logged.
    pub fn send(&self, pid: u32, arrived_ns: u64, function: &str) {
        let arrival_us = arrived_ns / 1000;
        let text = format!("pid={pid} arrival_us={arrival_us} function={function}");
        if let Err(error) = self.socket.send_to(text.as_bytes(), &self.path) {
            if self.lost.fetch_add(1, Relaxed) == 0 {
                let path = self.path.display();
                eprintln!("lambda_runtime_api: a hint to {path} is lost, more may be: {error}");
            }
        }
    }
}
