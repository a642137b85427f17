//! Warm sandboxes under test: processes that serve requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::Pid;

use crate::clock::{burn, sleep, wait_until, PATIENCE};
use crate::process::Process;

/// A connection: the client writes a byte as request, the server writes a byte as answer.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A sandbox that serves connections one after another.
pub struct Server {
    process: Process,
    address: Address,
}

#[derive(Clone, Copy)]
enum Address {
    Unix(&'static str),
    Tcp(u16),
}

impl Address {
    fn connect(self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path)?),
            Self::Tcp(port) => Box::new(TcpStream::connect(("127.0.0.1", port))?),
        })
    }

    fn serve(self, mut one: impl FnMut(Box<dyn Stream>)) -> std::io::Result<()> {
        match self {
            Self::Unix(path) => {
                let _ = std::fs::remove_file(path);
                let listener = UnixListener::bind(path)?;
                loop {
                    one(Box::new(listener.accept()?.0));
                }
            }
            Self::Tcp(port) => {
                let listener = TcpListener::bind(("127.0.0.1", port))?;
                loop {
                    one(Box::new(listener.accept()?.0));
                }
            }
        }
    }
}

/// Which task does the work of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// The thread that accepted the request.
    Acceptor,
    /// Another thread, while the acceptor waits for the next connection.
    Thread,
    /// A child, forked for the request.
    Child,
}

impl Server {
    /// Starts a sandbox on a Unix socket. A request takes `demand` of CPU time.
    ///
    /// # Errors
    ///
    /// The sandbox does not start.
    pub fn start(demand: Duration, worker: Worker) -> Result<Self> {
        Self::at(Address::Unix("/tmp/sandbox.sock"), demand, worker)
    }

    /// The same on a TCP port of the loopback interface.
    ///
    /// # Errors
    ///
    /// The sandbox does not start.
    pub fn start_tcp(demand: Duration) -> Result<Self> {
        Self::at(Address::Tcp(8080), demand, Worker::Acceptor)
    }

    fn at(address: Address, demand: Duration, worker: Worker) -> Result<Self> {
        let process = Process::spawn(move |_| {
            let result = match worker {
                Worker::Acceptor => address.serve(|stream| answer(stream, demand)),
                Worker::Child => address.serve(|stream| answer_in_child(stream, demand)),
                Worker::Thread => {
                    let (queue, work) = mpsc::channel();
                    thread::spawn(move || {
                        for stream in work {
                            answer(stream, demand);
                        }
                    });
                    address.serve(move |stream| {
                        let _ = queue.send(stream);
                    })
                }
            };
            if let Err(error) = result {
                panic!("cannot serve: {error}");
            }
        })?;
        let server = Self { process, address };
        let up = wait_until(PATIENCE, || server.address.connect().is_ok());
        anyhow::ensure!(up, "the sandbox does not start");
        // That connection is accepted and ends meanwhile.
        sleep(Duration::from_millis(50));
        Ok(server)
    }

    /// Returns the sandbox's process id.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// The sandbox does not accept it.
    pub fn request(&self) -> Result<Box<dyn Stream>> {
        let mut stream = self.address.connect().context("cannot connect")?;
        stream.write_all(b"?").context("cannot send the request")?;
        Ok(stream)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub fn call(&self) -> Result<()> {
        wait_for_answer(self.request()?)
    }
}

/// Waits for the answer to a request.
///
/// # Errors
///
/// There is no answer.
pub fn wait_for_answer(mut stream: Box<dyn Stream>) -> Result<()> {
    stream
        .read_exact(&mut [0])
        .context("no answer from the sandbox")
}

fn answer(mut stream: Box<dyn Stream>, demand: Duration) {
    if stream.read_exact(&mut [0]).is_ok() {
        burn(demand);
        let _ = stream.write_all(b"!");
    }
}

fn answer_in_child(mut stream: Box<dyn Stream>, demand: Duration) {
    if stream.read_exact(&mut [0]).is_err() {
        return;
    }
    let served = Process::burner(demand).and_then(|mut child| child.wait());
    if served.is_ok() {
        let _ = stream.write_all(b"!");
    }
}
