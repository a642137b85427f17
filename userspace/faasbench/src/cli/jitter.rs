//! `faasbench jitter`.

use anyhow::Result;
use clap::Args;
use faas_data::output::Sink;
use faas_data::trace::{to_csv, Trace};
use faas_workload::jitter::jitter;
use std::path::PathBuf;

/// Moves of arrivals at most, in microseconds.
const MOST_US: u32 = 1_000_000;

#[derive(Debug, Args)]
pub(super) struct JitterArgs {
    /// The trace
    trace: PathBuf,
    /// By how much arrivals are moved at most: 1us to 1000ms
    #[arg(long, value_name = "TIME", value_parser = time_us)]
    by: u32,
    /// Seed of the moves
    #[arg(long, default_value = "1", value_name = "X")]
    seed: u64,
    /// The copy to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
}

impl JitterArgs {
    /// Writes the copy.
    pub(super) fn execute(&self) -> Result<()> {
        let mut invocations = Trace::read(&self.trace)?.invocations;
        let sink = Sink::open(&self.output)?;
        jitter(&mut invocations, self.by, self.seed);
        sink.commit(to_csv(&invocations).as_bytes())
    }
}

/// A time such as `50us` or `2ms`, in microseconds.
fn time_us(text: &str) -> Result<u32, String> {
    let units = [("us", 1), ("ms", 1000)];
    let known = units
        .iter()
        .find_map(|(unit, us)| Some((text.strip_suffix(unit)?, us)));
    let time = known.and_then(|(number, us)| number.parse::<u32>().ok()?.checked_mul(*us));
    match time {
        Some(us @ 1..=MOST_US) => Ok(us),
        _ => Err("want a time from 1us to 1000ms, as 50us".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time_us("50us"), Ok(50));
        assert_eq!(time_us("2ms"), Ok(2000));
        for bad in [
            "",
            "50",
            "us",
            "0us",
            "-1us",
            "1001ms",
            "1.5ms",
            "5s",
            "99999999999us",
        ] {
            assert!(time_us(bad).is_err(), "{bad}");
        }
    }
}
