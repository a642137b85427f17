//! Selection of functions and invocations.

use super::counts::Function;
use super::Options;
use crate::random::Random;
use anyhow::{bail, Result};

/// Which functions to select, if not all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The most popular
    Popular,
    /// A random sample, by the seed
    Sample,
}

/// Applies the selection of `options`, keeping the order of the file: first the
/// most popular are dropped, then functions are picked, then the most popular
/// are capped.
pub(super) fn select(functions: Vec<Function>, options: &Options) -> Result<Vec<Function>> {
    let mut functions = functions;
    // Most popular first; ties keep the order of the file.
    functions.sort_by_key(|function| (std::cmp::Reverse(function.total), function.line));
    functions.drain(..options.drop_top.min(functions.len()));
    if let Some(count) = options.functions {
        if options.pick == Pick::Sample {
            shuffle(&mut functions, count, Random::new(options.seed));
        }
        functions.truncate(count);
    }
    if let Some(share) = options.cap_top {
        cap(&mut functions, share)?;
    }
    functions.sort_by_key(|function| function.line);
    Ok(functions)
}

/// Moves a random sample of `count` functions to the front.
fn shuffle(functions: &mut [Function], count: usize, mut random: Random) {
    for place in 0..count.min(functions.len()) {
        let other = place + random.below(functions.len() - place);
        functions.swap(place, other);
    }
}

/// Drops invocations of the most popular functions until none has more than
/// `share` of the rest.
fn cap(functions: &mut [Function], share: f64) -> Result<()> {
    let mut totals: Vec<u64> = functions.iter().map(|function| function.total).collect();
    totals.sort_unstable_by_key(|total| std::cmp::Reverse(*total));
    let Some(limit) = limit(&totals, share) else {
        bail!(
            "{} functions cannot each have {share} of the invocations or less",
            totals.len()
        );
    };
    for function in functions {
        thin(function, limit);
    }
    Ok(())
}

/// The maximum number of invocations of a function such that none has more than
/// `share` of all; `totals` are in descending order.
///
/// If the first k functions are cut to c each and `rest` is the sum of the
/// others, c = share x (k x c + rest), thus c = share x rest / (1 - k x share).
fn limit(totals: &[u64], share: f64) -> Option<u64> {
    let mut rest: u64 = totals.iter().sum();
    for (cut, total) in totals.iter().enumerate() {
        let free = 1.0 - cut as f64 * share;
        if free <= 0.0 {
            return None;
        }
        let limit = share * rest as f64 / free;
        if *total as f64 <= limit {
            // A small tolerance for rounding, so that a whole number stays
            // whole.
            return Some((limit + 1e-6) as u64);
        }
        rest -= total;
    }
    None
}

/// Keeps `limit` invocations of a function, evenly spread over its own.
fn thin(function: &mut Function, limit: u64) {
    if function.total <= limit {
        return;
    }
    // 128 bits, since both factors may have 44.
    let kept =
        |seen: u64| (u128::from(seen) * u128::from(limit) / u128::from(function.total)) as u64;
    let mut seen = 0;
    let mut counts = Vec::new();
    for (minute, count) in &function.counts {
        let before = kept(seen);
        seen += u64::from(*count);
        let left = (kept(seen) - before) as u32;
        if left > 0 {
            counts.push((*minute, left));
        }
    }
    function.counts = counts;
    function.total = limit;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_caps_the_share_of_every_function() {
        // 900 of 1000 cut to 25: 25 / 125 = 20 %
        assert_eq!(limit(&[900, 20, 20, 20, 20, 20], 0.2), Some(25));
        // 900 and 400 cut to c each, c = 0.3 (2 c + 100): 75 of 250
        assert_eq!(limit(&[900, 400, 50, 50], 0.3), Some(75));
        // Unchanged.
        assert_eq!(limit(&[10, 10], 0.5), Some(10));
        assert_eq!(limit(&[10, 10], 0.4), None);
        assert_eq!(limit(&[10], 0.5), None);
        assert_eq!(limit(&[10], 1.0), Some(10));
    }
}
