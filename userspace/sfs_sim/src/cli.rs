//! The command line.

use crate::cli::learn::LearnArgs;
use crate::cli::shards::ShardsArgs;
use crate::engine::simulate_watched;
use crate::policy::{Kind, Settings};
use crate::result::records;
use crate::{compare, durations};
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use faas_data::input::{is_name, MAX_US};
use faas_data::measure::Measure;
use faas_data::output::Output;
use faas_data::progress::Progress;
use faas_data::result::to_csv_without_waits;
use faas_data::stats;
use faas_data::trace::Trace;
use sfs_policy::{defaults, OverloadPolicy, SlicePolicy};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

mod learn;
mod shards;

/// Exact simulation of schedulers on a trace, to compare with live schedulers
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate one policy on a trace
    ///
    /// Writes DIR/NAME.csv, a result that `faasbench summarize` reads. All CPUs
    /// are equal, and nothing has overhead. The same options give the same
    /// bytes.
    Run(RunArgs),
    /// Compare policies, relative to processor sharing
    ///
    /// Prints a Markdown table. All columns but the last two are ratios to `ps`
    /// on the same trace (below 1 is better), as geometric means over the
    /// traces. Turnaround: mean of all, of the shortest 83 % by service time,
    /// of the others, percentiles, and the 99.9th percentile of the worst
    /// trace. Slowdown is turnaround / uncontended duration (service time plus
    /// time blocked). The last two columns are the mean turnaround relative to
    /// `srtf`, and preemptions per invocation.
    Compare(CompareArgs),
    /// Compare one FILTER queue with one per last-level cache, on large
    /// machines
    ///
    /// Prints a Markdown table: what the locks of the queues cost, and how far
    /// several queues deviate from the order of arrival. The lock hold times
    /// are assumptions; change them with the options.
    Shards(ShardsArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The trace
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// The policy
    #[arg(long)]
    policy: Kind,
    /// Output folder, created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the result; default: the policy's name
    #[arg(long, value_parser = check_name)]
    name: Option<String>,
    #[command(flatten)]
    policies: PolicyArgs,
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// The traces
    #[arg(required = true, value_name = "FILE")]
    traces: Vec<PathBuf>,
    /// The policies, separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    policy: Vec<Kind>,
    /// Label of the traces in the table; default: the first file's name
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Omit the table header, to append the rows to another table
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    policies: PolicyArgs,
}

/// Parameters of the policies.
#[derive(Debug, Args)]
struct PolicyArgs {
    /// Number of CPUs
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// sfs: fixed slice S in microseconds (1 to 10^13), not adapted to the
    /// arrivals
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=MAX_US))]
    slice_us: Option<u64>,
    /// sfs: O; overload begins when the head of FILTER has waited O x S (above
    /// 0)
    #[arg(long, value_name = "O", default_value_t = defaults::OVERLOAD_FACTOR)]
    overload_factor: f64,
    /// sfs: N; S is computed after every N arrivals, from those N
    #[arg(long, value_name = "N", default_value_t = defaults::WINDOW.get() as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iat_window: u32,
    /// sfs: time blocked also uses up credit, as without the paper's handling
    /// of I/O
    #[arg(long)]
    charge_io: bool,
    /// gittins: file of service times in microseconds, one per line, whose
    /// distribution is known; default: those of the trace
    #[arg(long, value_name = "FILE")]
    durations: Option<PathBuf>,
    #[command(flatten)]
    learn: LearnArgs,
}

impl Cli {
    /// Executes the command; returns what it prints.
    ///
    /// # Errors
    /// One sentence on what is wrong, for the user.
    pub fn execute(self) -> Result<String> {
        match self.command {
            Command::Run(args) => run(&args),
            Command::Compare(args) => compare(&args),
            Command::Shards(args) => shards::shards(&args),
        }
    }
}

fn run(args: &RunArgs) -> Result<String> {
    let settings = settings(&args.policies)?;
    let invocations = Trace::read(&args.trace)?.invocations;
    let name = args.name.as_deref().unwrap_or(args.policy.name());
    let cannot = || format!("cannot create the folder {}", args.out.display());
    std::fs::create_dir_all(&args.out).with_context(cannot)?;
    let output = Output::create(&args.out.join(format!("{name}.csv")))?;
    let progress = Progress::new(name, invocations.len() as u64, "invocations");
    let outcomes = simulate_watched(&invocations, args.policy, &settings, &|n| progress.at(n))
        .with_context(|| format!("cannot simulate {}", args.trace.display()))?;
    drop(progress);
    let records = records(&invocations, &outcomes);
    output.commit(to_csv_without_waits(&records).as_bytes())?;
    let measures = Measure::all(&records, &invocations);
    let turnarounds: Vec<f64> = measures.iter().map(Measure::turnaround_ms).collect();
    Ok(format!(
        "{name}: {} invocations, mean turnaround {:.3} ms",
        invocations.len(),
        stats::mean(&turnarounds).unwrap_or_default()
    ))
}

fn compare(args: &CompareArgs) -> Result<String> {
    let settings = settings(&args.policies)?;
    let read = |file: &PathBuf| Ok(Trace::read(file)?.invocations);
    let traces: Vec<_> = args.traces.iter().map(read).collect::<Result<_>>()?;
    let rows = compare::rows(&traces, &args.policy, &settings).context("cannot simulate")?;
    let first = args.traces[0].file_stem().unwrap_or_default();
    let label = args.label.clone();
    let label = label.unwrap_or_else(|| first.to_string_lossy().into_owned());
    let head = if args.no_header {
        String::new()
    } else {
        compare::header()
    };
    let table = compare::to_markdown(&label, &args.policy, &rows);
    Ok(format!("{head}{table}").trim_end().to_string())
}

fn settings(args: &PolicyArgs) -> Result<Settings> {
    let mut settings = Settings::new(args.cpus);
    let factor = args.overload_factor;
    let overload = OverloadPolicy::with_factor(factor).context("--overload-factor")?;
    settings.overload = Some(overload);
    settings.window = NonZeroUsize::new(args.iat_window as usize).context("--iat-window is 0")?;
    if let Some(us) = args.slice_us {
        settings.slice = SlicePolicy::fixed(us * 1000).context("--slice-us")?;
    }
    settings.charge_io = args.charge_io;
    if let Some(file) = &args.durations {
        settings.durations_us = durations::read(file)?;
    }
    args.learn.apply(&mut settings)?;
    Ok(settings)
}

/// Checks that `name` can be a file's name.
fn check_name(name: &str) -> Result<String, String> {
    let plain = Path::new(name).file_name().is_some_and(|base| base == name);
    if !plain || name.starts_with('.') || !is_name(name) {
        return Err("want a name such as sfs-2: no slash, space, comma or leading dot".into());
    }
    Ok(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, ValueEnum};

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn policies_have_the_same_names_everywhere() {
        assert_eq!(Kind::value_variants(), Kind::ALL);
        for kind in Kind::ALL {
            assert_eq!(Kind::from_str(kind.name(), false), Ok(kind));
        }
    }

    #[test]
    fn names_are_file_names() {
        assert!(check_name("sfs-2").is_ok());
        for bad in ["", ".", "..", "a/b", "/a", ".a", "a b", "a,b", "a/"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
