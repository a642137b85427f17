//! A token that passes round a ring of processes, one of which runs at any time: the cost of a
//! wake-up and a switch where one task waits for another, as a client for its server.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use anyhow::{Context, Result};
use clap::ValueEnum;
use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};

use crate::crew::Crew;

/// How the token is passed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Through {
    /// A byte in a pipe.
    Pipe,
    /// A byte in a pair of Unix stream sockets.
    Socket,
    /// A word in shared memory, and futex(2).
    Futex,
}

/// Passes a token `rounds` times round each of `rings` rings of `tasks` processes, and prints
/// the handoffs per second.
///
/// # Errors
///
/// A process cannot be forked or fails, or the result cannot be written.
pub fn run(through: Through, rings: u32, tasks: u32, rounds: u32) -> Result<()> {
    let mut crew = Crew::new()?;
    for _ in 0..rings {
        match through {
            Through::Pipe => {
                let links = (0..tasks).map(|_| io::pipe()).collect::<io::Result<_>>();
                add_ring(&mut crew, links.context("cannot make a pipe")?, rounds)?;
            }
            Through::Socket => {
                let links = (0..tasks)
                    .map(|_| UnixStream::pair())
                    .collect::<io::Result<_>>();
                add_ring(&mut crew, links.context("cannot make a socket")?, rounds)?;
            }
            Through::Futex => add_futex_ring(&mut crew, tasks as usize, rounds)?,
        }
    }
    let took = crew.run()?;
    let handoffs = f64::from(rings) * f64::from(tasks) * f64::from(rounds);
    writeln!(io::stdout(), "{:.0}", handoffs / took.as_secs_f64())?;
    Ok(())
}

/// Adds a ring: member N reads from link N and writes to the next one. The first member has the
/// token.
fn add_ring<R: Read, W: Write>(crew: &mut Crew, mut links: Vec<(R, W)>, rounds: u32) -> Result<()> {
    for member in 0..links.len() {
        crew.add(|| {
            let next = (member + 1) % links.len();
            for _ in 0..rounds {
                if member == 0 {
                    links[next].1.write_all(&[0])?;
                }
                links[member].0.read_exact(&mut [0])?;
                if member != 0 {
                    links[next].1.write_all(&[0])?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds a ring in which member N waits until word N is set.
fn add_futex_ring(crew: &mut Crew, tasks: usize, rounds: u32) -> Result<()> {
    let words = shared_words(tasks)?;
    for member in 0..tasks {
        crew.add(|| {
            let next = &words[(member + 1) % tasks];
            for _ in 0..rounds {
                if member == 0 {
                    give(next)?;
                }
                take(&words[member])?;
                if member != 0 {
                    give(next)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns words that this process shares with its children until it ends.
fn shared_words(number: usize) -> Result<&'static [AtomicU32]> {
    let length = (number * size_of::<AtomicU32>())
        .try_into()
        .context("a ring has members")?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping that is never unmapped.
    let memory = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_SHARED) }
        .context("cannot share memory")?;
    let first: NonNull<AtomicU32> = memory.cast();
    // SAFETY: the mapping is large enough, aligned to a page, and zero, a valid AtomicU32.
    Ok(unsafe { std::slice::from_raw_parts(first.as_ptr(), number) })
}

fn give(word: &AtomicU32) -> io::Result<()> {
    word.store(1, SeqCst);
    futex(word, libc::FUTEX_WAKE, 1)
}

fn take(word: &AtomicU32) -> io::Result<()> {
    while word.compare_exchange(1, 0, SeqCst, SeqCst).is_err() {
        match futex(word, libc::FUTEX_WAIT, 0) {
            Err(error)
                if ![Some(libc::EAGAIN), Some(libc::EINTR)].contains(&error.raw_os_error()) =>
            {
                return Err(error)
            }
            _ => {}
        }
    }
    Ok(())
}

fn futex(word: &AtomicU32, operation: i32, value: u32) -> io::Result<()> {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call; there is no timeout.
    let result =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
