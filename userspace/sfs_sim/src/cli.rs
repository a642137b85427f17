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

/// Exact simulation of schedulers on a trace, for comparison with live ones.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a trace under one policy
    ///
    /// Writes DIR/NAME.csv, a result as `faasbench summarize` reads it. All CPUs
    /// are alike and nothing costs anything. The same options make the same
    /// bytes.
    Run(RunArgs),
    /// Compare policies, relative to processor sharing
    ///
    /// Prints a table in Markdown. Every number but the last two columns' is a
    /// ratio to that of `ps` on the same trace, geometric mean over the traces;
    /// below 1 is better. Turnarounds: mean of all, of the shortest 83 % by
    /// service time, of the others, percentiles, the worst trace's 99.9th.
    /// Slowdowns: turnaround / uncontended
    /// duration (service time plus time blocked). Then the mean turnaround relative to
    /// `srtf`, and preemptions for each invocation.
    Compare(CompareArgs),
    /// FILTER in one queue or one for each last-level cache, on large machines
    ///
    /// Prints a table in Markdown: what the locks of the queues cost, and how far from
    /// the order of arrival several queues are. For how long a lock is held is an
    /// assumption that you can change.
    Shards(ShardsArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The trace
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Who has the CPUs
    #[arg(long)]
    policy: Kind,
    /// Folder for the result, made if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the result; by default the policy's
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
    /// Who has the CPUs, separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    policy: Vec<Kind>,
    /// What the traces are called in the table; by default the first file's name
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Without the head of the table, to be put under another one
    #[arg(long)]
    no_header: bool,
    #[command(flatten)]
    policies: PolicyArgs,
}

/// What the policies need to know.
#[derive(Debug, Args)]
struct PolicyArgs {
    /// Number of CPUs
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// sfs: fixed slice S in microseconds (1 to 10^13); S does not follow the
    /// arrivals
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=MAX_US))]
    slice_us: Option<u64>,
    /// sfs: O, overload begins when the head of FILTER has waited O x S (above 0)
    #[arg(long, value_name = "O", default_value_t = defaults::OVERLOAD_FACTOR)]
    overload_factor: f64,
    /// sfs: N, arrivals that S is computed from, and after which it is computed
    /// anew
    #[arg(long, value_name = "N", default_value_t = defaults::WINDOW.get() as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iat_window: u32,
    /// sfs: time blocked uses up credit, too, as without the paper's handling of
    /// I/O
    #[arg(long)]
    charge_io: bool,
    /// gittins: file of service times in microseconds, one on each line, whose
    /// distribution is known; by default those of the trace
    #[arg(long, value_name = "FILE")]
    durations: Option<PathBuf>,
    #[command(flatten)]
    learn: LearnArgs,
}

impl Cli {
    /// Does what the command line says.
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
    let cannot = || format!("cannot make the folder {}", args.out.display());
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
    fn policies_are_called_the_same_everywhere() {
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
