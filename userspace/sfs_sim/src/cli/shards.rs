//! The subcommand `shards`.

use crate::shards::{simulate, Figures, Setup};
use anyhow::{Context, Result};
use clap::Args;
use std::fmt::Write;

#[derive(Debug, Args)]
pub struct ShardsArgs {
    /// Numbers of CPUs
    #[arg(long, value_delimiter = ',', default_value = "64,128,256,512", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: Vec<u32>,
    /// CPUs per last-level cache
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus_of_cache: u32,
    /// Mean service times in microseconds
    #[arg(long, value_name = "US", value_delimiter = ',', default_value = "100,1000,10000", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    service_us: Vec<u64>,
    /// Length of a turn in microseconds, after which an invocation queues
    /// again; 0: invocations run to completion, as in FILTER
    #[arg(long, value_name = "US", default_value = "0")]
    turn_us: u64,
    /// Offered load
    #[arg(long, default_value = "1.0")]
    load: f64,
    /// Lock hold time in nanoseconds if the last holder was a CPU with the same
    /// cache
    #[arg(long, value_name = "NS", default_value = "300")]
    near_ns: u64,
    /// Lock hold time in nanoseconds if the last holder was a CPU with another
    /// cache
    #[arg(long, value_name = "NS", default_value = "1000")]
    far_ns: u64,
    /// Invocations per CPU
    #[arg(long, value_name = "N", default_value = "300", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    invocations: u32,
    /// Seed of arrivals and service times
    #[arg(long, default_value = "1")]
    seed: u64,
}

/// Returns a Markdown table that compares one queue with one per cache.
///
/// # Errors
/// A number is out of range.
pub fn shards(args: &ShardsArgs) -> Result<String> {
    let mut table = String::from(
        "| CPUs | mean service | shards | mean turnaround | CPU time lost | busiest lock | from other shards | overtaken by |\n|---|---|---|---|---|---|---|---|\n",
    );
    for &service_us in &args.service_us {
        for &cpus in &args.cpus {
            for shards in [1, cpus.div_ceil(args.cpus_of_cache)] {
                let figures = simulate(&setup(args, cpus, shards, service_us))
                    .context("cannot simulate shards")?;
                row(&mut table, cpus, service_us, shards, &figures);
            }
        }
    }
    Ok(table.trim_end().to_owned())
}

fn setup(args: &ShardsArgs, cpus: u32, shards: u32, service_us: u64) -> Setup {
    Setup {
        cpus: cpus as usize,
        cpus_of_cache: args.cpus_of_cache as usize,
        shards: shards as usize,
        near_ns: args.near_ns,
        far_ns: args.far_ns,
        service_ns: service_us * 1000,
        turn_ns: match args.turn_us {
            0 => u64::MAX,
            us => us.saturating_mul(1000),
        },
        load: args.load,
        invocations: args.invocations as usize * cpus as usize,
        seed: args.seed,
    }
}

fn row(table: &mut String, cpus: u32, service_us: u64, shards: u32, figures: &Figures) {
    let ms = |ns: f64| ns / 1e6;
    let _ = writeln!(
        table,
        "| {cpus} | {} ms | {shards} | {:.2} ms | {:.1} % | {:.0} % | {:.0} % | {:.2} ms |",
        service_us as f64 / 1e3,
        ms(figures.turnaround_ns),
        figures.lost * 100.0,
        figures.locked * 100.0,
        figures.moved * 100.0,
        ms(figures.overtaking_ns as f64),
    );
}
