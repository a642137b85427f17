//! Signals that ask the program to end.

use crate::failure::Failure;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Exit status after SIGINT, which is what Ctrl-C sends.
pub const INTERRUPTED: u8 = 130;
/// Exit status after SIGTERM and SIGHUP.
pub const TERMINATED: u8 = 143;

/// Notes SIGINT, SIGTERM and SIGHUP from the moment that it is made, so that the program
/// can end in order.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    status: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Takes the signals over; from now on they do not end the process.
    ///
    /// # Errors
    /// If the system does not allow that.
    pub fn catch() -> Result<Self> {
        let status = Arc::new(AtomicUsize::new(0));
        for (signal, value) in [
            (SIGINT, INTERRUPTED),
            (SIGTERM, TERMINATED),
            (SIGHUP, TERMINATED),
        ] {
            signal_hook::flag::register_usize(signal, status.clone(), value.into())
                .context("cannot handle signals")?;
        }
        Ok(Self { status })
    }

    /// Returns an error with the exit status if such a signal has come.
    ///
    /// # Errors
    /// [`Failure::Interrupted`].
    pub fn check(&self) -> Result<(), Failure> {
        match self.status.load(Ordering::Relaxed) {
            0 => Ok(()),
            status => Err(Failure::Interrupted(status as u8)),
        }
    }
}
