//! Warm-up: a platform is ready when each of its workers has served a request.

use super::load::{body, send_all, Outcome, Request};
use super::target::{Place, Places};
use anyhow::{bail, Context, Result};
use faas_data::trace::Phase;
use faas_replay::clock::monotonic_ns;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Time for which a handler blocks in the warm-up, in microseconds, so that the
/// next request goes to another worker.
const BLOCK_US: u64 = 300_000;

/// Time between two attempts to reach a target that is not ready.
const RETRY: Duration = Duration::from_millis(100);

/// Sends `count` concurrent requests to each place, and repeats those that fail
/// until all are answered.
///
/// # Errors
/// If that takes longer than `ready`.
pub fn up(places: &Places, count: u32, ready: Duration) -> Result<()> {
    let deadline_ns = monotonic_ns() + ready.as_nanos() as u64;
    let all = places.all();
    let mut missing: Vec<(&str, &Place)> = Vec::new();
    for one in &all {
        missing.extend(std::iter::repeat_n(*one, count as usize));
    }
    while !missing.is_empty() {
        let requests: Vec<Request> = missing
            .iter()
            .map(|(_, place)| Request {
                at_ns: 0,
                place,
                body: body(&[Phase::io(BLOCK_US)]),
            })
            .collect();
        let now = monotonic_ns();
        let patience_ns = deadline_ns.saturating_sub(now);
        let outcomes = send_all(&requests, now, patience_ns, &AtomicU64::new(0))
            .context("cannot send the requests of the warm-up")?;
        let pairs = missing.iter().zip(&outcomes);
        let failed: Vec<_> = pairs.filter(|(_, outcome)| !is_well(outcome)).collect();
        let Some(((function, _), outcome)) = failed.first() else {
            break;
        };
        if monotonic_ns() >= deadline_ns {
            let how = explain(outcome);
            let s = ready.as_secs();
            bail!("the target of {function} was not ready within {s} s: {how}");
        }
        missing = failed.into_iter().map(|(one, _)| *one).collect();
        std::thread::sleep(RETRY);
    }
    Ok(())
}

fn is_well(outcome: &Outcome) -> bool {
    let answer = outcome.answer.ok();
    answer.is_some_and(|answer| (200..300).contains(&answer.status))
}

fn explain(outcome: &Outcome) -> String {
    match outcome.answer {
        Ok(answer) => format!("it answered with status {}", answer.status),
        Err(errno) => errno.desc().to_string(),
    }
}
