//! Clients that send requests to servers over Unix sockets: the time from a request to its
//! answer, as a proxy sees it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::crew::Crew;
use crate::latency::print;
use crate::system::{burn, now, sleep_until};

/// The clients' behaviour.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Pairs of a client and its server, each a process.
    pub clients: u32,
    /// Requests of each client.
    pub requests: u32,
    /// CPU time of the server for a request.
    pub service: Duration,
    /// Time that a client sleeps between an answer and its next request.
    pub think: Duration,
}

/// Runs the load and prints how long the answers took.
///
/// # Errors
///
/// A process cannot be forked or fails, or the result cannot be written.
pub fn run(load: Load) -> Result<()> {
    let mut crew = Crew::new()?;
    let (mut results, reporter) = io::pipe().context("cannot make a pipe")?;
    for number in 0..load.clients {
        let (client, server) = UnixStream::pair().context("cannot make a pair of sockets")?;
        crew.add(|| serve(&server, load))?;
        crew.add(|| ask(&client, &reporter, load, number))?;
    }
    drop(reporter);
    // The results are more than a pipe holds.
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        results.read_to_end(&mut all).map(|_| all)
    });
    crew.run()?;
    let bytes = reading
        .join()
        .map_err(|_| anyhow::anyhow!("the reader has panicked"))??;
    let times = bytes.chunks_exact(8).filter_map(|one| one.try_into().ok());
    print(
        times
            .map(|one| Duration::from_nanos(u64::from_ne_bytes(one)))
            .collect(),
    )
}

fn serve(mut requests: &UnixStream, load: Load) -> io::Result<()> {
    for _ in 0..load.requests {
        requests.read_exact(&mut [0])?;
        burn(load.service);
        requests.write_all(&[0])?;
    }
    Ok(())
}

/// Sends a client's requests, and reports the latencies at the end, so that it only measures
/// meanwhile.
fn ask(
    mut server: &UnixStream,
    mut reporter: &io::PipeWriter,
    load: Load,
    number: u32,
) -> io::Result<()> {
    let mut took = Vec::new();
    // The clients start at different times.
    sleep_until(now() + load.think * number / load.clients);
    for _ in 0..load.requests {
        let sent = now();
        server.write_all(&[0])?;
        server.read_exact(&mut [0])?;
        let answered = now();
        took.extend_from_slice(&nanoseconds(answered - sent).to_ne_bytes());
        sleep_until(answered + load.think);
    }
    // A pipe does not split a write shorter than a page, so numbers stay whole.
    took.chunks(512)
        .try_for_each(|part| reporter.write_all(part))
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}
