//! Keystrokes: a byte passes through a pseudoterminal to a program that echoes it, like a shell,
//! with or without sshd.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::pty::openpty;
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

use crate::crew::Crew;
use crate::latency::print;
use crate::system::{now, sleep_until};

/// Sends `keys` keystrokes, one every `pause`, and prints how long the answers took.
///
/// # Errors
///
/// There is no pseudoterminal, the program fails, or the result cannot be written.
pub fn run(keys: u32, pause: Duration) -> Result<()> {
    let pty = openpty(None, None).context("cannot open a pseudoterminal")?;
    let mut mode = tcgetattr(&pty.slave)?;
    cfmakeraw(&mut mode);
    tcsetattr(&pty.slave, SetArg::TCSANOW, &mode)?;
    let (mut terminal, mut program) = (File::from(pty.master), File::from(pty.slave));
    let mut crew = Crew::new()?;
    crew.add(|| {
        for _ in 0..keys {
            let mut key = [0];
            program.read_exact(&mut key)?;
            program.write_all(&key)?;
        }
        Ok(())
    })?;
    let mut times = Vec::new();
    crew.start();
    let mut due = now();
    for _ in 0..keys {
        due += pause;
        sleep_until(due);
        let typed = now();
        terminal.write_all(b"k")?;
        terminal.read_exact(&mut [0])?;
        times.push(now() - typed);
    }
    crew.run()?;
    print(times)
}
