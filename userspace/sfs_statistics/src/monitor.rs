//! Prints the statistics of the running scheduler.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use scx_stats::prelude::*;

use super::{Form, Metrics};

/// Time between two attempts to reach a scheduler.
const RETRY: Duration = Duration::from_secs(1);

/// Prints the statistics of the running scheduler every `interval`, until standard output is
/// closed. While no scheduler answers, it waits, and calls `say` once with the reason.
///
/// # Errors
///
/// The statistics may not be read, or cannot be printed.
pub fn monitor(interval: Duration, form: Form, mut say: impl FnMut(&str)) -> Result<()> {
    let mut server = None;
    let mut waiting = false;
    loop {
        match next_metrics(&mut server) {
            Ok(metrics) => {
                waiting = false;
                match metrics.print(&mut std::io::stdout(), form) {
                    Err(error) if is_broken_pipe(&error) => return Ok(()),
                    printed => printed?,
                }
                thread::sleep(interval);
            }
            Err(error) if io_kind(&error) == Some(ErrorKind::PermissionDenied) => {
                return Err(error).context("cannot ask for statistics");
            }
            Err(error) => {
                server = None;
                if !waiting {
                    say(&why_none(&error));
                }
                waiting = true;
                thread::sleep(RETRY);
            }
        }
    }
}

/// Returns the counts since the last call from `server`. Reconnects to the current scheduler if
/// `server` has gone.
fn next_metrics(server: &mut Option<StatsClient>) -> Result<Metrics> {
    let connected = match server.take() {
        Some(server) => server,
        None => StatsClient::new().connect(None)?,
    };
    server.insert(connected).request("stats", Vec::new())
}

fn why_none(error: &anyhow::Error) -> String {
    match io_kind(error) {
        // No socket, or the leftover of a killed scheduler.
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            "no scx_sfs is running, waiting for one".into()
        }
        _ => format!("no scx_sfs answers ({error:#}), waiting for one"),
    }
}

fn io_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    error.downcast_ref().map(std::io::Error::kind)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_kind(error) == Some(ErrorKind::BrokenPipe)
}
