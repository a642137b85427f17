//! Finds out how long iterations take alone.
//!
//! A *sample* is the CPU time of a new process that does a number of
//! iterations, so it has the same parts as an invocation: the start of the
//! process, its working set, the iterations, its end. The differences of
//! samples are these parts.

use crate::rates::{Rate, Rates};
use faas_data::fixed::Kernel;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Samples of each value, of which the median counts.
pub const REPETITIONS: usize = 7;

/// Attempts at samples that vary little; the best one counts.
const ATTEMPTS: usize = 3;

/// CPU time of iterations of a sample, at least, in ns: longer than anything
/// that an idle machine does now and then.
const LONG_NS: u64 = 40_000_000;

/// Iterations of the first sample.
const FIRST: u64 = 1 << 10;

/// So many iterations would be no work at all.
const MOST: u64 = 1 << 40;

/// The spread above which the measurement is doubtful.
pub const DOUBTFUL: f64 = 0.05;

/// The spread above which it is no measurement, by default, in per cent.
pub const USELESS_PERCENT: u32 = 25;

/// Why there are no rates.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// The samples of one value differ too much.
    #[error(
        "the calibration of {} varies by {:.0} % (interquartile range of {REPETITIONS}; want at \
         most {limit} %): something else uses this machine; try again when it is idle, or with a \
         larger --max-spread",
        .kernel.name(), .spread * 100.0
    )]
    Varies {
        /// The kind of work.
        kernel: Kernel,
        /// Interquartile range / median.
        spread: f64,
        /// The largest that was permitted, in per cent.
        limit: u32,
    },
    /// Iterations take no time.
    #[error("the calibration of {} found no time that it takes: is the CPU clock of this machine right?", .0.name())]
    NoTime(Kernel),
    /// A sample could not be taken.
    #[error("the calibration failed: {0}")]
    Sample(String),
}

/// What one kind of work takes alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its number.
    pub number: usize,
    /// See [`Rate::setup_ns`].
    pub setup_ns: u64,
    /// See [`Rate::iteration_ps`].
    pub iteration_ps: u64,
    /// Interquartile range of the samples / their median.
    pub spread: f64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// See [`Rates::start_ns`].
    pub start_ns: u64,
    /// The kinds of work that were asked for.
    pub kernels: Vec<Found>,
}

impl Calibrated {
    /// The rates.
    pub fn rates(&self) -> Rates {
        let mut rates = Rates {
            start_ns: self.start_ns,
            ..Rates::default()
        };
        for one in &self.kernels {
            if let Some(rate) = rates.kernels.get_mut(one.number) {
                *rate = Rate {
                    setup_ns: one.setup_ns,
                    iteration_ps: one.iteration_ps,
                };
            }
        }
        rates
    }
}

/// Finds the rates of `kernels`. `sample` measures a process that makes the
/// working set of a kernel, if there is one, and does a number of iterations on
/// it; its CPU time is in ns. The interquartile range of samples may be `limit`
/// per cent of their median.
///
/// # Errors
/// If a sample fails, or the samples vary too much.
pub fn calibrate(
    kernels: &[Kernel],
    limit: u32,
    mut sample: impl FnMut(Option<Kernel>, u64) -> Result<u64, String>,
) -> Result<Calibrated, Problem> {
    let mut take = |kernel, count| sample(kernel, count).map_err(Problem::Sample);
    // The first process is a cold one.
    take(None, 0)?;
    let start_ns = median(&repeat(|| take(None, 0))?);
    let mut found = Vec::new();
    for kernel in kernels {
        let one = one(*kernel, start_ns, &mut |count| take(Some(*kernel), count))?;
        let spread = one.spread;
        if spread * 100.0 > f64::from(limit) {
            return Err(Problem::Varies {
                kernel: *kernel,
                spread,
                limit,
            });
        }
        found.push(one);
    }
    Ok(Calibrated {
        start_ns,
        kernels: found,
    })
}

type Sampler<'a> = dyn FnMut(u64) -> Result<u64, Problem> + 'a;

fn one(kernel: Kernel, start_ns: u64, take: &mut Sampler<'_>) -> Result<Found, Problem> {
    let empty_ns = median(&repeat(|| take(0))?);
    let count = enough(kernel, empty_ns, take)?;
    let (samples, spread) = steadiest(|| take(count))?;
    let taken_ns = median(&samples).saturating_sub(empty_ns);
    let iteration_ps = (u128::from(taken_ns) * 1000 / u128::from(count)) as u64;
    if iteration_ps == 0 {
        return Err(Problem::NoTime(kernel));
    }
    Ok(Found {
        number: kernel.number(),
        setup_ns: empty_ns.saturating_sub(start_ns),
        iteration_ps,
        spread,
    })
}

/// A number of iterations that takes [`LONG_NS`] or more.
fn enough(kernel: Kernel, empty_ns: u64, take: &mut Sampler<'_>) -> Result<u64, Problem> {
    let mut count = FIRST;
    while count < MOST {
        let taken_ns = take(count)?.saturating_sub(empty_ns);
        if taken_ns >= LONG_NS {
            return Ok(count);
        }
        // Short samples say little: a step of 16 at most, and of 2 at least.
        let factor = LONG_NS.div_ceil(taken_ns.max(1)) + 1;
        count = count.saturating_mul(factor.clamp(2, 16));
    }
    Err(Problem::NoTime(kernel))
}

/// Samples, and their spread; again if it is doubtful.
fn steadiest(mut take: impl FnMut() -> Result<u64, Problem>) -> Result<(Vec<u64>, f64), Problem> {
    let mut best = repeat(&mut take).map(|samples| (spread(&samples), samples))?;
    for _ in 1..ATTEMPTS {
        if best.0 <= DOUBTFUL {
            break;
        }
        let samples = repeat(&mut take)?;
        if spread(&samples) < best.0 {
            best = (spread(&samples), samples);
        }
    }
    Ok((best.1, best.0))
}

fn repeat(mut take: impl FnMut() -> Result<u64, Problem>) -> Result<Vec<u64>, Problem> {
    let mut samples = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        samples.push(take()?);
    }
    samples.sort_unstable();
    Ok(samples)
}

fn median(sorted: &[u64]) -> u64 {
    sorted[sorted.len() / 2]
}

/// Interquartile range / median, by nearest rank.
fn spread(sorted: &[u64]) -> f64 {
    let rank = |share: usize| (sorted.len() * share).div_ceil(4) - 1;
    let range = sorted[rank(3)] - sorted[rank(1)];
    range as f64 / median(sorted).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which a process takes 200 us, a working set 3 ms and an
    /// iteration 1.5 ns, each sample longer by what `noise` says about its number.
    fn machine(
        noise: impl Fn(u64) -> f64,
    ) -> impl FnMut(Option<Kernel>, u64) -> Result<u64, String> {
        let mut number = 0;
        move |kernel, count| {
            number += 1;
            let setup_ns = if kernel.is_some() { 3_000_000 } else { 0 };
            let plain = (200_000 + setup_ns + count * 3 / 2) as f64;
            Ok((plain * (1.0 + noise(number))) as u64)
        }
    }

    #[test]
    fn the_parts_of_a_quiet_machine_are_found() {
        let kernels = [Kernel::ALL[2], Kernel::ALL[7]];
        let found = calibrate(&kernels, 25, machine(|_| 0.0)).unwrap();
        assert_eq!(found.start_ns, 200_000);
        let numbers: Vec<usize> = found.kernels.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [2, 7]);
        for one in &found.kernels {
            assert_eq!((one.setup_ns, one.spread), (3_000_000, 0.0));
            assert_eq!(one.iteration_ps, 1_500);
        }
        let rates = found.rates();
        assert_eq!(rates.kernels[7].iteration_ps, 1_500);
        assert_eq!(rates.kernels[0], Rate::default());
    }

    #[test]
    fn a_rare_disturbance_does_not_count() {
        let noise = |number: u64| if number.is_multiple_of(5) { 3.0 } else { 0.0 };
        let found = calibrate(&[Kernel::ALL[0]], 25, machine(noise)).unwrap();
        let one = found.kernels[0];
        assert_eq!((one.setup_ns, one.iteration_ps), (3_000_000, 1_500));
    }

    #[test]
    fn a_noisy_attempt_is_followed_by_another() {
        // The first samples of the long measurement, after 1 + 7 + 7 + 4 others.
        let noise = |number: u64| {
            if (20..27).contains(&number) {
                (number % 2) as f64
            } else {
                0.0
            }
        };
        let found = calibrate(&[Kernel::ALL[0]], 25, machine(noise)).unwrap();
        let one = found.kernels[0];
        assert_eq!((one.iteration_ps, one.spread), (1_500, 0.0));
    }

    #[test]
    fn a_little_variation_is_told_and_much_is_refused() {
        let found = calibrate(
            &[Kernel::ALL[0]],
            25,
            machine(|number| 0.02 * (number % 5) as f64),
        );
        let spread = found.unwrap().kernels[0].spread;
        assert!(spread > 0.01 && spread < DOUBTFUL, "{spread}");
        let found = calibrate(&[Kernel::ALL[0]], 25, machine(|number| (number % 3) as f64));
        let said = found.unwrap_err().to_string();
        assert!(
            said.starts_with("the calibration of chase-32k varies by 100 %"),
            "{said}"
        );
    }

    #[test]
    fn a_clock_that_stands_still_and_a_failed_sample_are_errors() {
        let still = calibrate(&[Kernel::ALL[3]], 25, |_, _| Ok(5));
        assert_eq!(still.unwrap_err(), Problem::NoTime(Kernel::ALL[3]));
        let failed = calibrate(&[Kernel::ALL[3]], 25, |kernel, _| match kernel {
            None => Ok(5),
            Some(_) => Err("no memory".to_string()),
        });
        let said = failed.unwrap_err().to_string();
        assert_eq!(said, "the calibration failed: no memory");
    }
}
