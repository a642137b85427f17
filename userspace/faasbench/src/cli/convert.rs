//! `faasbench convert`.

use super::choices::{Between, Figure, Pick};
use super::{between, factor, load};
use anyhow::{bail, Context, Result};
use clap::{Args, Subcommand};
use faas_data::input;
use faas_data::output::{note, Sink};
use faas_data::progress::Progress;
use faas_data::trace::{self, Invocation};
use faas_workload::convert::{self, azure, fc, Skipped};
use faas_workload::{describe, in_time, stretch_to, MAX_INVOCATIONS};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Number of unusable lines to show.
const SHOWN: usize = 10;

#[derive(Debug, Subcommand)]
pub(super) enum Convert {
    /// Request lists of the SFS artefact (`name script N arrival id`)
    ///
    /// Service times are the artefact's own durations of fib(N). Lines that
    /// cannot be used are skipped, counted and shown on standard error.
    Sfs(SfsArgs),
    /// The Azure Functions 2019 trace: its files of invocations and durations
    ///
    /// Arrivals are uniform within their minute. Service times come from the
    /// function's percentiles, with straight lines between them; they are
    /// wall-clock times. The minutes are selected first, then --drop-top,
    /// --functions and --cap-top apply, then the arrivals are stretched to
    /// --load.
    Azure(AzureArgs),
    /// Lists of fc-microbenchmark (`program, argument, IAT in s`)
    ///
    /// Service times are the medians of baselines, measured on an idle machine.
    Fc(FcArgs),
}

#[derive(Debug, Args)]
pub(super) struct SfsArgs {
    /// The request list
    file: PathBuf,
    /// Factor on the arrivals, which are milliseconds (0.001 to 1000); the
    /// artefact uses 9
    #[arg(long, default_value = "9", value_parser = factor)]
    multiplier: f64,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct AzureArgs {
    /// File of invocation counts per function and minute
    #[arg(long, value_name = "FILE")]
    invocations: PathBuf,
    /// File of durations per function
    #[arg(long, value_name = "FILE")]
    durations: PathBuf,
    /// First and last minute, named like the columns; default: all
    #[arg(long, value_name = "A..B", value_parser = minutes)]
    minutes: Option<azure::Minutes>,
    /// Number of functions to use; default: all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    functions: Option<u32>,
    /// Which functions to use
    #[arg(
        long,
        default_value = "popular",
        value_name = "WHICH",
        requires = "functions"
    )]
    pick: Pick,
    /// Drop invocations of the most popular functions until none has more than
    /// this share (0.0001 to 1)
    #[arg(long, value_name = "SHARE", value_parser = cap)]
    cap_top: Option<f64>,
    /// Drop this number of functions, the most popular first
    #[arg(
        long,
        default_value = "0",
        value_name = "K",
        conflicts_with = "cap_top"
    )]
    drop_top: u32,
    /// Interpolation between two percentiles of a function's durations
    #[arg(long, default_value = "linear", value_name = "LINE")]
    between: Between,
    /// Minimum service time in microseconds: the files have 0 ms for durations
    /// below half a millisecond
    #[arg(long, default_value = "1", value_name = "US", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    min_us: u64,
    /// Seed of the random numbers
    #[arg(long, default_value = "1", value_name = "X")]
    seed: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct FcArgs {
    /// The list
    file: PathBuf,
    /// Baselines (`workloadID, workload argument, run, tFC, tVM`),
    /// uncompressed; default: those of the benchmark's authors
    #[arg(long, value_name = "FILE")]
    baselines: Option<PathBuf>,
    /// The duration to use as service time
    #[arg(long, default_value = "tfc", value_name = "WHICH")]
    figure: Figure,
    #[command(flatten)]
    common: Common,
}

/// Options of all converters. Converted invocations are scaled, cut and stretched, in
/// this order.
#[derive(Debug, Args)]
struct Common {
    /// Number of invocations to drop at the front
    #[arg(long, value_name = "K", default_value = "0")]
    skip: u32,
    /// Number of invocations to use, after --skip; default: all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_INVOCATIONS)))]
    first: Option<u32>,
    /// Stretch the arrivals so that they offer this share of the CPUs' capacity
    /// (0.001 to 100); default: unchanged
    #[arg(long, value_parser = load, requires = "cpus")]
    load: Option<f64>,
    /// Number of CPUs that the load refers to [default: 1]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: Option<u32>,
    /// Factor on all service times (0.001 to 1000)
    #[arg(long, default_value = "1.0", value_parser = factor)]
    scale: f64,
    /// The trace to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
}

impl Convert {
    /// Writes the trace.
    pub(super) fn execute(self) -> Result<()> {
        match self {
            Self::Sfs(args) => sfs(&args),
            Self::Azure(args) => azure(&args),
            Self::Fc(args) => fc(&args),
        }
    }
}

impl Common {
    /// Cuts, stretches and writes `invocations`, and prints the offered load.
    fn write(&self, invocations: Vec<Invocation>, sink: Sink) -> Result<()> {
        let mut invocations = self.cut(invocations)?;
        let cpus = self.cpus.unwrap_or(1);
        if let Some(load) = self.load {
            stretch_to(&mut invocations, load, cpus);
            if !in_time(&invocations) {
                bail!("the trace would last longer than 115 days: want a higher load or a lower scale");
            }
        }
        sink.commit(trace::to_csv(&invocations).as_bytes())?;
        note(&describe(&invocations, cpus));
        Ok(())
    }

    /// The invocations after --skip and --first; if some were skipped, the
    /// first one arrives at 0.
    fn cut(&self, mut invocations: Vec<Invocation>) -> Result<Vec<Invocation>> {
        let there = invocations.len();
        let skip = self.skip as usize;
        if skip >= there {
            bail!("--skip {skip} leaves nothing of {there} invocations");
        }
        invocations.drain(..skip);
        if let Some(first) = self.first {
            invocations.truncate(first as usize);
        }
        if invocations.len() > MAX_INVOCATIONS as usize {
            bail!("there are more than {MAX_INVOCATIONS} invocations: use --first");
        }
        let begin_us = if skip > 0 {
            invocations[0].arrival_us
        } else {
            0
        };
        for one in &mut invocations {
            one.arrival_us -= begin_us;
        }
        Ok(invocations)
    }
}

fn sfs(args: &SfsArgs) -> Result<()> {
    let bytes = input::read(&args.file)?;
    let sink = Sink::open(&args.common.output)?;
    let text = String::from_utf8_lossy(&bytes);
    let converted = convert::sfs::convert(&text, args.multiplier, args.common.scale);
    show(&args.file, &converted.skipped);
    let file = args.file.display();
    if converted.invocations.is_empty() {
        bail!("{file}: none of its lines is a request `name script N arrival id`");
    }
    note(&format!(
        "{file}: {} requests converted, {} lines skipped, {} sorted in",
        converted.invocations.len(),
        converted.skipped.len(),
        converted.out_of_order,
    ));
    args.common.write(converted.invocations, sink)
}

fn azure(args: &AzureArgs) -> Result<()> {
    let options = azure::Options {
        minutes: args.minutes,
        drop_top: args.drop_top as usize,
        functions: args.functions.map(|count| count as usize),
        pick: args.pick.into(),
        cap_top: args.cap_top,
        between: args.between.into(),
        scale: args.common.scale,
        min_us: args.min_us,
        seed: args.seed,
    };
    let (counts, durations) = (open(&args.invocations)?, open(&args.durations)?);
    let sink = Sink::open(&args.common.output)?;
    let length = |file: &File| file.metadata().map_or(0, |found| found.len());
    let progress = Progress::new("reading", length(&counts) + length(&durations), "bytes");
    let converted = azure::convert(
        (
            &args.invocations.display().to_string(),
            progress.reading(counts),
        ),
        (
            &args.durations.display().to_string(),
            progress.reading(durations),
        ),
        &options,
    )?;
    drop(progress);
    show(&args.durations, &converted.skipped_durations);
    show(&args.invocations, &converted.skipped_invocations);
    note(&format!(
        "{} of {} invocations converted, of {} functions; rows skipped: {} of invocations, {} of durations; \
         without durations: {} invocations; without invocations: {} functions",
        converted.invocations.len(),
        converted.available,
        converted.functions,
        converted.skipped_invocations.len(),
        converted.skipped_durations.len(),
        converted.without_durations,
        converted.idle,
    ));
    args.common.write(converted.invocations, sink)
}

fn fc(args: &FcArgs) -> Result<()> {
    let bytes = input::read(&args.file)?;
    let costs = costs(args)?;
    let sink = Sink::open(&args.common.output)?;
    let text = String::from_utf8_lossy(&bytes);
    // One more than the limit, to detect an excess.
    let first = args.common.first.unwrap_or(MAX_INVOCATIONS + 1) as usize;
    let first = first.saturating_add(args.common.skip as usize);
    let converted = fc::convert(&text, &costs, args.common.scale, first);
    show(&args.file, &converted.skipped);
    let file = args.file.display();
    if converted.invocations.is_empty() {
        bail!("{file}: none of its lines is a request `program, argument, IAT` with a baseline");
    }
    note(&format!(
        "{file}: {} requests converted, {} lines skipped",
        converted.invocations.len(),
        converted.skipped.len(),
    ));
    args.common.write(converted.invocations, sink)
}

/// The baselines of the command line.
fn costs(args: &FcArgs) -> Result<fc::Costs> {
    let Some(path) = &args.baselines else {
        return Ok(fc::Costs::built_in(args.figure.into()));
    };
    let bytes = input::read(path)?;
    let (costs, skipped) = fc::Costs::parse(&String::from_utf8_lossy(&bytes), args.figure.into());
    show(path, &skipped);
    if costs.is_empty() {
        bail!(
            "{}: none of its lines is a baseline `workloadID, workload argument, run, tFC, tVM`",
            path.display()
        );
    }
    Ok(costs)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Prints the first unusable lines of `file`.
fn show(file: &Path, skipped: &Skipped) {
    let file = file.display();
    for (line, reason) in skipped.iter().take(SHOWN) {
        note(&format!("{file}:{line}: {reason}, skipped"));
    }
    if skipped.len() > SHOWN {
        note(&format!("... and {} more", skipped.len() - SHOWN));
    }
}

/// Two minutes of a day, as `480..539`.
fn minutes(text: &str) -> Result<azure::Minutes, String> {
    let parse = |part: &str| input::number("minute", part, 1440).ok().map(|n| n as u32);
    let parts = text.split_once("..");
    let range = parts.and_then(|(from, to)| Some((parse(from)?, parse(to)?)));
    let ordered = range.filter(|(from, to)| from <= to);
    ordered.ok_or_else(|| "want A..B as 480..539, up to 1440".to_string())
}

fn cap(text: &str) -> Result<f64, String> {
    between(text, 0.0001, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_in_order() {
        assert_eq!(minutes("480..539"), Ok((480, 539)));
        assert_eq!(minutes("7..7"), Ok((7, 7)));
        for bad in ["", "7", "8..7", "1..1441", "-1..3", "a..b"] {
            assert!(minutes(bad).is_err(), "{bad}");
        }
    }
}
