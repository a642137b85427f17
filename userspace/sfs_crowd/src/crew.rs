//! A crew of processes that start together at a gate and are waited for.

use std::io::{self, Read};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use nix::sys::wait::{wait, WaitStatus};
use nix::unistd::{fork, ForkResult};

use crate::system::now;

/// Processes that wait for a common start: each reads a pipe to its end, which comes when the
/// last writer is closed.
pub struct Crew {
    gate: Option<(io::PipeReader, io::PipeWriter)>,
    members: usize,
}

impl Crew {
    /// Returns a crew without members.
    ///
    /// # Errors
    ///
    /// A pipe cannot be made.
    pub fn new() -> Result<Self> {
        Ok(Self {
            gate: Some(io::pipe().context("cannot make a pipe")?),
            members: 0,
        })
    }

    /// Forks a process that waits at the gate, does `work`, and ends.
    ///
    /// # Errors
    ///
    /// The process cannot be forked.
    pub fn add(&mut self, work: impl FnOnce() -> io::Result<()>) -> Result<()> {
        // SAFETY: the process has a single thread.
        match unsafe { fork() }.context("cannot fork")? {
            ForkResult::Parent { .. } => self.members += 1,
            ForkResult::Child => {
                let ok = self.pass().and_then(|()| work()).is_ok();
                // SAFETY: ends the process without writing output that the parent has buffered.
                unsafe { libc::_exit(i32::from(!ok)) }
            }
        }
        Ok(())
    }

    /// Opens the gate. Later members do not wait.
    pub fn start(&mut self) {
        self.gate = None;
    }

    /// Opens the gate, waits for all members, and returns how long they took.
    ///
    /// # Errors
    ///
    /// A member fails.
    pub fn run(mut self) -> Result<Duration> {
        let start = now();
        self.start();
        let members = self.members;
        let mut failed = 0;
        for _ in 0..members {
            let ended = wait().context("cannot wait for the processes")?;
            failed += u32::from(!matches!(ended, WaitStatus::Exited(_, 0)));
        }
        ensure!(failed == 0, "{failed} of {members} processes failed");
        Ok(now() - start)
    }

    /// Waits at the gate, in a child. Closes the child's copies of it.
    fn pass(&mut self) -> io::Result<()> {
        let Some((mut reader, writer)) = self.gate.take() else {
            return Ok(());
        };
        drop(writer);
        reader.read_to_end(&mut Vec::new()).map(drop)
    }
}
