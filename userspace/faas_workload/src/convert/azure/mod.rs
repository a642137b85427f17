//! The Azure Functions 2019 trace, as released (Shahrad et al., ATC 2020).
//!
//! Two files of a day: how often each function was invoked in each minute
//! (`HashOwner,HashApp,HashFunction,Trigger,1,...,1440`; a part of the minutes
//! will do), and how long it took (`HashOwner,HashApp,HashFunction,Average,
//! Count,Minimum,Maximum,percentile_Average_0,...,percentile_Average_100`, in
//! milliseconds). The three hashes together are a function.
//!
//! Times that are not in the files are drawn, from a stream of random numbers for
//! each function, so the selection does not change them:
//! - An arrival is uniform within its minute.
//! - A service time comes from the function's percentiles: the inverse of its
//!   distribution function is a straight line from each percentile to the
//!   next, or a straight line of the logarithms ([`Between`]). The files have
//!   nothing from the 75th to the 99th percentile, and a straight line between
//!   them is far above a long tail: in samples of 100 and 500 functions the
//!   mean is 55 % and 21 % above that of the files' own averages, with
//!   logarithms 28 % and 10 %.
//!
//! Limits: the durations are wall-clock times and include waiting. The percentiles
//! are of averages over 30 s, so single invocations of busy functions vary more.
//! Durations below half a millisecond are 0 ms in the files.

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

/// Minutes of the day, the first and the last of a range.
pub type Minutes = (u32, u32);

/// Which part of the files to take, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// These minutes only.
    pub minutes: Option<Minutes>,
    /// Leave this number of functions out, from the most popular on.
    pub drop_top: usize,
    /// Take this number of functions only.
    pub functions: Option<usize>,
    /// Which functions to take.
    pub pick: Pick,
    /// Largest share of all invocations that one function may have (0 to 1);
    /// invocations of a more popular one are left out, evenly over time.
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
    /// Invocations of functions that have no durations.
    pub without_durations: u64,
    /// Functions that were not invoked in the minutes selected.
    pub idle: usize,
    /// Invocations in the minutes selected, of functions with durations.
    pub available: u64,
}

/// Joins and converts the two files, each given with its name for messages.
/// Holds the durations and the counts of functions that were invoked, not the
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
