//! Waiting for the previous scheduler to be unloaded.

use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use sfs_bpf::preflight;
use tracing::warn;

use crate::service;
use crate::signals::Signals;

/// Time limit for the unloading, and the polling interval.
const LEAVING_LIMIT: Duration = Duration::from_secs(30);
const LEAVING_STEP: Duration = Duration::from_millis(100);

/// Waits until a scheduler that is being unloaded has gone. This takes long
/// while processes fork continuously. Returns false if a stop was requested
/// meanwhile.
///
/// # Errors
///
/// It is still there at the time limit.
pub fn wait_until_gone(signals: &Signals) -> Result<bool> {
    if !preflight::is_unloading()? {
        return Ok(true);
    }
    warn!(
        "waiting for the previous scheduler to be unloaded, {} s at most",
        LEAVING_LIMIT.as_secs()
    );
    service::starting("waiting for the previous scheduler", LEAVING_LIMIT);
    let begin = Instant::now();
    while preflight::is_unloading()? {
        if begin.elapsed() >= LEAVING_LIMIT {
            bail!(
                "the previous scheduler is still being unloaded after {} s: look for processes \
                 that fork without pause, and try again",
                LEAVING_LIMIT.as_secs()
            );
        }
        if signals.wait(LEAVING_STEP)? {
            return Ok(false);
        }
    }
    Ok(true)
}
