//! Many threads that sleep.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::system::{now, ready, sleep_until, spawn};

/// Starts `tasks` threads that sleep forever.
///
/// # Errors
///
/// A thread cannot be started.
pub fn run(tasks: u32) -> Result<()> {
    let there = Arc::new(AtomicU32::new(0));
    for number in 0..tasks {
        let there = Arc::clone(&there);
        spawn(move || {
            there.fetch_add(1, Relaxed);
            loop {
                thread::park();
            }
        })
        .with_context(|| format!("{number} of {tasks}"))?;
    }
    while there.load(Relaxed) < tasks {
        sleep_until(now() + Duration::from_millis(5));
    }
    ready()
}
