//! Groups of processes that exchange messages: many short wake-ups, each by another
//! process, the load of hackbench.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{ensure, Context, Result};
use nix::sys::wait::{wait, WaitStatus};
use nix::unistd::{fork, ForkResult, Pid};

use crate::system::now;

/// Bytes of a message.
const LENGTH: usize = 100;

/// A pipe through which all wait for one start: who waits reads to its end, which comes
/// when the last writer is closed.
type Gate = (io::PipeReader, io::PipeWriter);

/// Runs `groups` groups of `pairs` senders and receivers, each sender with `messages`
/// messages to each receiver, and prints how long they took in milliseconds.
///
/// # Errors
///
/// There cannot be so many processes or sockets, one fails, or nobody reads the result.
pub fn run(groups: u32, pairs: u32, messages: u32) -> Result<()> {
    let gate = io::pipe().context("cannot make a pipe")?;
    let mut children = Vec::new();
    for _ in 0..groups {
        start_group(pairs as usize, messages as usize, &gate, &mut children)?;
    }
    let start = now();
    drop(gate);
    let mut failed = 0;
    for _ in &children {
        let ended = wait().context("cannot wait for the processes")?;
        failed += u32::from(!matches!(ended, WaitStatus::Exited(_, 0)));
    }
    let took = now() - start;
    ensure!(
        failed == 0,
        "{failed} of {} processes failed",
        children.len()
    );
    writeln!(io::stdout(), "{:.1}", took.as_secs_f64() * 1000.0)?;
    Ok(())
}

/// Forks a group. Its sockets are closed here afterwards.
fn start_group(pairs: usize, messages: usize, gate: &Gate, children: &mut Vec<Pid>) -> Result<()> {
    let mut inputs = Vec::new();
    for _ in 0..pairs {
        let (input, output) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let received = start(gate, || receive(&input, pairs * messages))?;
        children.push(received);
        inputs.push(output);
    }
    for _ in 0..pairs {
        children.push(start(gate, || send(&inputs, messages))?);
    }
    Ok(())
}

/// Forks a process that waits at the gate, does `work`, and ends.
fn start(gate: &Gate, work: impl FnOnce() -> io::Result<()>) -> Result<Pid> {
    // SAFETY: the process has a single thread.
    match unsafe { fork() }.context("cannot fork")? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let ok = pass(gate).and_then(|()| work()).is_ok();
            // SAFETY: ends the process; what the parent has buffered is the parent's.
            unsafe { libc::_exit(i32::from(!ok)) }
        }
    }
}

fn pass(gate: &Gate) -> io::Result<()> {
    // SAFETY: the child's copy of the writing end; nothing here uses it after this.
    unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(&gate.1)) };
    let mut reader = &gate.0;
    reader.read_to_end(&mut Vec::new()).map(drop)
}

fn send(receivers: &[UnixStream], messages: usize) -> io::Result<()> {
    let message = [0; LENGTH];
    for _ in 0..messages {
        for mut receiver in receivers {
            receiver.write_all(&message)?;
        }
    }
    Ok(())
}

fn receive(mut input: &UnixStream, messages: usize) -> io::Result<()> {
    let mut message = [0; LENGTH];
    for _ in 0..messages {
        input.read_exact(&mut message)?;
    }
    Ok(())
}
