//! The output of latencies.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{ensure, Result};

/// Prints the mean, the 99th percentile and the longest of `times`, in microseconds.
///
/// # Errors
///
/// `times` is empty, or the result cannot be written.
pub fn print(mut times: Vec<Duration>) -> Result<()> {
    ensure!(!times.is_empty(), "nothing was measured");
    times.sort_unstable();
    let count = u32::try_from(times.len())?;
    let mean = times.iter().sum::<Duration>() / count;
    let p99 = times[(times.len() * 99).div_ceil(100) - 1];
    let longest = times[times.len() - 1];
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    writeln!(
        io::stdout(),
        "mean {:.0} p99 {:.0} longest {:.0}",
        us(mean),
        us(p99),
        us(longest)
    )?;
    Ok(())
}
