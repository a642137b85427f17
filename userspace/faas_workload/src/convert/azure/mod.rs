//! The Azure Functions 2019 trace, as released (Shahrad et al., ATC 2020).
//!
//! Two files of a day: the number of invocations of each function in each
//! minute (`HashOwner,HashApp,HashFunction,Trigger,1,...,1440`; a part of the
//! minutes is enough), and the durations
//! (`HashOwner,HashApp,HashFunction,Average,
//! Count,Minimum,Maximum,percentile_Average_0,...,percentile_Average_100`, in
//! milliseconds). The three hashes together identify a function.
//!
//! Times that are not in the files are drawn, from a separate stream of random
//! numbers for each function, so that the selection does not change them:
//! - An arrival is uniform within its minute.
//! - A service time comes from the function's percentiles: the inverse of its
//!   distribution function is a straight line from each percentile to the next,
//!   or a straight line of the logarithms ([`Between`]). The files have nothing
//!   between the 75th and the 99th percentile, and a straight line between them
//!   is far above a long tail. In samples of 100 and 500 functions the mean is
//!   55 % and 21 % above that of the files' own averages, with logarithms 28 %
//!   and 10 %.
//!
//! Limits: the durations are wall-clock times and include waiting. The
//! percentiles are of averages over 30 s, so single invocations of busy
//! functions vary more. Durations below half a millisecond are 0 ms in the
//! files.

pub mod arrivals;
mod counts;
mod durations;
mod select;
mod table;

use super::Skipped;
use crate::random::Random;
use crate::{MAX_INVOCATIONS, MAX_SERVICE_US};
use anyhow::{bail, Result};
use counts::Function;
use faas_data::trace::Invocation;
use std::io::Read;

pub use durations::Between;
pub use select::Pick;

const MINUTE_US: u64 = 60_000_000;

/// The first and the last minute of a range, within a day.
pub type Minutes = (u32, u32);

/// Selection from the files, and its conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// These minutes only.
    pub minutes: Option<Minutes>,
    /// Drop this number of functions, the most popular first.
    pub drop_top: usize,
    /// Use this number of functions only.
    pub functions: Option<usize>,
    /// Which functions to use.
    pub pick: Pick,
    /// Maximum share of all invocations for one function (0 to 1); invocations
    /// of more popular ones are dropped, evenly over time.
    pub cap_top: Option<f64>,
    /// How to interpolate between two percentiles of a function's durations.
    pub between: Between,
    /// Factor on all service times.
    pub scale: f64,
    /// Shortest service time in microseconds, 1 or more.
    pub min_us: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The result of the conversion of the two files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// The invocations by arrival; the first minute begins at 0.
    pub invocations: Vec<Invocation>,
    /// Number of their functions.
    pub functions: usize,
    /// Unusable rows of the durations.
    pub skipped_durations: Skipped,
    /// Unusable rows of the invocations.
    pub skipped_invocations: Skipped,
    /// Invocations of functions without durations.
    pub without_durations: u64,
    /// Functions that were not invoked in the selected minutes.
    pub idle: usize,
    /// Invocations in the selected minutes, of functions with durations.
    pub available: u64,
}

/// Joins and converts the two files, each given with its name for messages.
/// Keeps the durations and counts of invoked functions in memory, not the
/// files.
///
/// # Errors
/// If a file cannot be read or lacks a column, or if no or more than
/// [`MAX_INVOCATIONS`] invocations are selected.
pub fn convert(
    invocations: (&str, impl Read),
    durations: (&str, impl Read),
    options: &Options,
) -> Result<Converted> {
    let durations = durations::read(durations.0, durations.1)?;
    let counts = counts::read(
        invocations.0,
        invocations.1,
        &durations.quantiles,
        options.minutes,
    )?;
    let available = counts.functions.iter().map(|function| function.total).sum();
    if available == 0 {
        bail!(
            "{}: no function with durations is invoked in these minutes",
            invocations.0
        );
    }
    let functions = select::select(counts.functions, options)?;
    Ok(Converted {
        invocations: place(&functions, counts.first_minute, options)?,
        functions: functions.len(),
        skipped_durations: durations.skipped,
        skipped_invocations: counts.skipped,
        without_durations: counts.without_durations,
        idle: counts.idle,
        available,
    })
}

/// Draws all arrivals and service times.
fn place(functions: &[Function], first_minute: u32, options: &Options) -> Result<Vec<Invocation>> {
    let total: u64 = functions.iter().map(|function| function.total).sum();
    if total == 0 {
        bail!("no invocations are left: take more functions or minutes");
    }
    if total > u64::from(MAX_INVOCATIONS) {
        bail!("{total} invocations are selected, more than {MAX_INVOCATIONS}: take fewer minutes or functions, or cap or drop the most popular");
    }
    let mut invocations = Vec::with_capacity(total as usize);
    for function in functions {
        let mut random = Random::stream(options.seed, function.line as u64);
        for (minute, count) in &function.counts {
            let start_us = u64::from(minute - first_minute) * MINUTE_US;
            for _ in 0..*count {
                let arrival_us = start_us + random.below(MINUTE_US as usize) as u64;
                let us =
                    function.quantiles.at(random.unit(), options.between) * 1e3 * options.scale;
                let us = (us.round() as u64).clamp(options.min_us, MAX_SERVICE_US);
                invocations.push(Invocation::cpu(arrival_us, function.name.clone(), us));
            }
        }
    }
    invocations.sort_by_key(|one| one.arrival_us);
    Ok(invocations)
}

#[cfg(test)]
mod tests;
