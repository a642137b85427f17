//! Groups of processes that exchange messages: many short wake-ups, each by another process,
//! the load of hackbench.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};

use crate::crew::Crew;

/// Bytes of a message.
const LENGTH: usize = 100;

/// Runs `groups` groups of `pairs` senders and receivers, each sender with `messages`
/// messages to each receiver, and prints how long they took in milliseconds.
///
/// # Errors
///
/// A process or socket cannot be made, a process fails, or the result cannot be written.
pub fn run(groups: u32, pairs: u32, messages: u32) -> Result<()> {
    let mut crew = Crew::new()?;
    for _ in 0..groups {
        add_group(pairs as usize, messages as usize, &mut crew)?;
    }
    let took = crew.run()?;
    writeln!(io::stdout(), "{:.1}", took.as_secs_f64() * 1000.0)?;
    Ok(())
}

/// Adds a group, and closes this process's copies of its sockets.
fn add_group(pairs: usize, messages: usize, crew: &mut Crew) -> Result<()> {
    let mut inputs = Vec::new();
    for _ in 0..pairs {
        let (input, output) = UnixStream::pair().context("cannot make a pair of sockets")?;
        crew.add(|| receive(&input, pairs * messages))?;
        inputs.push(output);
    }
    for _ in 0..pairs {
        crew.add(|| send(&inputs, messages))?;
    }
    Ok(())
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
