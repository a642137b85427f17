//! The command line.

mod choices;
mod convert;
mod drive;
mod examples;
mod gen;
mod jitter;
mod sandbox;
mod trial;

use crate::run::{check_name, Run};
use crate::scheduler::{kernel_release, row_name, Scheduler};
use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use faas_data::kind::{Blocking, Defaults, Kind, Work};
use faas_data::output::{note, print, Sink};
use faas_data::result;
use faas_data::summary::{json, summarise, SchedulerInfo, Setting, Status, Summary};
use faas_data::trace::Trace;
use faas_fixed::calibration::USELESS_PERCENT;
use faas_replay::refill::Amounts;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit code of a run whose result is written, but whose scheduler did not
/// load or did not stay loaded.
const SCHEDULER_TROUBLE: u8 = 3;

/// Workloads for function schedulers: generate, convert, replay, measure,
/// summarize and compare
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 80,
          after_help = examples::PROGRAM)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Generate a trace
    ///
    /// The same options give the same bytes everywhere. Arrivals are scaled so that
    /// the whole sample offers --load; the load is printed on standard error.
    #[command(subcommand)]
    Gen(gen::Gen),
    /// Convert the workload of another project to a trace
    ///
    /// Unusable lines are skipped, counted and shown on standard error.
    #[command(subcommand)]
    Convert(convert::Convert),
    /// Copy a trace with arrivals that are moved a little, at random
    ///
    /// If a figure changes much between such copies, it is luck.
    Jitter(jitter::JitterArgs),
    /// Replay a trace on this machine under one scheduler and measure
    ///
    /// Writes DIR/NAME.csv (one row per invocation), DIR/NAME.json (the
    /// summary) and, for a sched_ext scheduler, DIR/NAME.log (its output). The
    /// process that starts the invocations needs real-time priority. Exit
    /// status 3: the files are written, but the scheduler did not load, did not
    /// stay loaded or did not exit cleanly; the summary's `status` says which.
    // Usages are not wrapped by themselves.
    #[command(override_usage = "\
faasbench run [OPTIONS] --trace <FILE> --scheduler <NAME> --cpus <C>
         --out <DIR>")]
    Run(RunArgs),
    /// Send a trace to a running platform and measure
    ///
    /// Each invocation is an HTTP request (POST) on its own connection, sent at
    /// its arrival even if earlier ones are unanswered. Its body is JSON that
    /// tells the handler what to do, such as {"phases":"io:20000;cpu:150000"}.
    /// The handler may answer with its measurements, such as
    /// {"start_ns":S,"cpu_us":U,"voluntary":V,"involuntary":I} with S on the
    /// monotonic clock. Files and exit status are those of `run`. An invocation
    /// starts at the handler's time if there is one, otherwise when it was
    /// sent.
    #[command(override_usage = "\
faasbench drive [OPTIONS] --trace <FILE> --scheduler <NAME> --cpus <C>
         --out <DIR> --target <[FUNCTION=]URL>")]
    Drive(drive::DriveArgs),
    /// Summarize a result
    ///
    /// Percentiles are by nearest rank. The short invocations are the shortest
    /// 83 % by service time. Slowdown is turnaround / uncontended duration
    /// (service time plus time blocked).
    Summarize(SummarizeArgs),
    /// Compare summaries: prints a table, and writes plots to DIR/report.html
    ///
    /// Writes DIR/summary.json (the list of summaries, in the given order) and
    /// DIR/report.html (one file without external resources).
    Report(ReportArgs),
    /// Compare schedulers over several seeds: prints a table of ratios
    ///
    /// Each row is compared with the first, seed by seed: geometric mean of the ratios, 95 %
    /// interval, smallest and largest seed, and a probability that is corrected for the
    /// number of rows. Writes seeds.md, seeds.csv and runs.csv beside the list, which
    /// `make bench SEEDS=20` makes. See docs/statistics.md.
    Seeds(SeedsArgs),
    /// Compare EEVDF, scx_sfs and a renice daemon on this server, with its noise
    ///
    /// Measures the machine, then replays generated traces under each in
    /// interleaved blocks, in random order. EEVDF is there twice: what differs
    /// between the two is noise, and no smaller difference counts. Refuses if
    /// the machine is busy or another sched_ext scheduler is loaded. A guard
    /// that is independent of the session unloads scx_sfs if the trial dies,
    /// hangs or takes too long. The result is one file without names, which is
    /// shown before it is kept, and sent nowhere. See docs/trial.md.
    Trial(trial::TrialArgs),
    /// Compute everything in the file of a trial again, and compare
    ///
    /// Exit status 1: something in the file does not agree with its figures.
    Verify(trial::VerifyArgs),
    /// Measure what small things cost here, under the scheduler that is loaded
    ///
    /// Pipes, fork and exit, wake-ups, switches, timers: medians and quartiles in
    /// ns, on the first two CPUs that may be used. See docs/sensitivity.md.
    Calibrate {
        /// Number of measurements
        #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999))]
        repetitions: u32,
        /// Print JSON instead of the table
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct SeedsArgs {
    /// The list of the runs: OUT/series.json of `make bench SEEDS=20`
    list: PathBuf,
    /// Show all figures also without this share, in per cent, of the first and of the last
    /// invocations
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=49))]
    trim: Option<u8>,
    /// Print JSON instead of the table: a list of the rows of seeds.csv
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The trace to replay
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// eevdf, cfs, fifo, rr, batch, renice, idle, sfs-user, or a sched_ext
    /// scheduler by name or path
    ///
    /// Settings may follow in parentheses, as "eevdf(slice=10ms;preempt=none)":
    /// slice (base slice) and preempt (none, voluntary, full, lazy) of the
    /// kernel for any scheduler, task-slice for eevdf, after (S) and poll for
    /// renice, idle and sfs-user, steps for renice and idle. They are put back afterwards. See
    /// docs/baselines.md.
    #[arg(long, value_name = "NAME")]
    scheduler: String,
    /// Arguments of the sched_ext scheduler, separated by spaces
    #[arg(
        long,
        default_value = "",
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    scheduler_args: String,
    /// The kernel's name for the scheduler (the start of
    /// /sys/kernel/sched_ext/root/ops, up to a `_`); default: the program's
    /// name without scx_
    #[arg(long, value_name = "NAME")]
    scheduler_ops: Option<String>,
    /// Number of CPUs to use; on a machine with more, the invocations are
    /// restricted to the first ones
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// Folder for the files, created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the row and of its files; default: the scheduler's name
    #[arg(long, value_parser = check_name)]
    name: Option<String>,
    /// How the machine's CPUs are implemented, for the summary: icount, tcg,
    /// kvm, ...
    #[arg(long, env = "FAASBENCH_ACCEL", default_value = "native")]
    accel: String,
    /// Print the summary as JSON instead of its main figures
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "What functions do")]
    kinds: KindArgs,
    #[command(flatten, next_help_heading = "Sandboxes")]
    sandboxes: sandbox::SandboxArgs,
}

/// The kinds of phases for which the trace has none.
#[derive(Debug, Args)]
struct KindArgs {
    /// Kind of work of cpu phases without a kind (cpu:5000@fib has one)
    #[arg(long, value_parser = kind::<Work>(), default_value_t = Work::Spin, value_name = "KIND")]
    work: Work,
    /// Kind of blocking of io phases without a kind (io:5000@pipe has one)
    #[arg(long, value_parser = kind::<Blocking>(), default_value_t = Blocking::Sleep, value_name = "KIND")]
    io_kind: Blocking,
    /// How much the measurements of the calibration of fixed work may vary:
    /// interquartile range / median, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = USELESS_PERCENT, value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_spread: u32,
    /// CPU time in us by which the demand of an invocation grows after each
    /// switch, as if it had to fill its caches again: on the same CPU, on
    /// another one, at another last-level cache, on another NUMA node (0 to
    /// 10000; missing ones are as the last). If that is more than a turn on a
    /// CPU, nothing ends. Fixed work does not grow. See docs/sensitivity.md.
    #[arg(long, value_name = "US[,CORE[,CACHE[,NODE]]]")]
    refill: Option<Amounts>,
}

#[derive(Debug, Args)]
struct SummarizeArgs {
    /// The result
    #[arg(required_unless_present = "lost")]
    result: Option<PathBuf>,
    /// Why there is no result: what happened to the lost machine
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "result",
        requires = "scheduler"
    )]
    lost: Option<String>,
    /// The trace of the result
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Number of CPUs that it ran on
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// Name of the row; default: the result's name without .csv
    #[arg(long, value_name = "NAME", value_parser = check_name)]
    scheduler: Option<String>,
    /// Version of the scheduler; default: the kernel's
    #[arg(long, value_name = "VERSION")]
    scheduler_version: Option<String>,
    /// Arguments of the scheduler
    #[arg(
        long,
        default_value = "",
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    scheduler_args: String,
    /// Release of the kernel that it ran on; default: this machine's
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// How the machine's CPUs were implemented: icount, tcg, kvm, simulated,
    /// ...
    #[arg(long, env = "FAASBENCH_ACCEL", default_value = "native")]
    accel: String,
    /// The summary to write; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Args)]
struct ReportArgs {
    /// The summaries; DIR/summary.json itself is ignored
    #[arg(required = true)]
    summaries: Vec<PathBuf>,
    /// Folder for the files, created if missing; default: that of the first
    /// summary
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of the row to compare the others with
    #[arg(long, default_value = "eevdf", value_name = "NAME")]
    baseline: String,
    /// Folder for the pictures as SVG files, created if missing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Print JSON instead of the table: the list of the summaries
    #[arg(long)]
    json: bool,
}

/// Parses the name of a kind of phase; the help describes each.
fn kind<K: Kind>() -> impl TypedValueParser<Value = K> {
    let known = K::ALL
        .iter()
        .map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(known).try_map(|name| K::parse(&name))
}

fn load(text: &str) -> Result<f64, String> {
    between(text, 0.001, 100.0)
}

fn factor(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1000.0)
}

fn mean_ms(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6)
}

fn between(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("want a number from {low} to {high}")),
    }
}

impl Cli {
    /// Returns the definition of the command line.
    pub fn command() -> clap::Command {
        examples::with_examples(<Self as CommandFactory>::command())
    }

    /// Parses the command line of this process; ends it if that is wrong, or asks for help.
    pub fn of_process() -> Self {
        let matches = Self::command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Executes the command.
    ///
    /// # Errors
    /// One sentence for the user: what is wrong.
    pub fn execute(self) -> Result<ExitCode> {
        match self.command {
            Command::Gen(gen) => gen.execute()?,
            Command::Convert(convert) => convert.execute()?,
            Command::Jitter(args) => args.execute()?,
            Command::Run(args) => {
                let json = args.json;
                return finish(&args.read()?.execute()?, json);
            }
            Command::Drive(args) => return args.execute(),
            Command::Summarize(args) => summarize(args)?,
            Command::Trial(args) => args.execute()?,
            Command::Verify(args) => args.execute()?,
            Command::Calibrate { repetitions, json } => {
                faas_trial::costs::report(repetitions, json)?;
            }
            Command::Seeds(args) => faas_seeds::report(&args.list, args.trim, args.json)?,
            Command::Report(args) => {
                faas_report::write(&faas_report::Request {
                    summaries: &args.summaries,
                    out: args.out.as_deref(),
                    baseline: &args.baseline,
                    svg: args.svg.as_deref(),
                    json: args.json,
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RunArgs {
    fn read(self) -> Result<Run> {
        let ops = self.scheduler_ops.as_deref();
        Ok(Run {
            scheduler: Scheduler::find(&self.scheduler, ops, &self.scheduler_args)?,
            trace: self.trace,
            args: self.scheduler_args,
            name: self.name.unwrap_or_else(|| row_name(&self.scheduler)),
            cpus: self.cpus,
            out: self.out,
            accel: self.accel,
            sandboxes: Some(self.sandboxes.read(self.cpus)?),
            defaults: Defaults {
                work: self.kinds.work,
                blocking: self.kinds.io_kind,
            },
            refill: self.kinds.refill,
            max_spread: self.kinds.max_spread,
            is_watched: true,
        })
    }
}

/// Prints the main numbers, or all of them as JSON, and the scheduler's status unless it is ok.
fn finish(summary: &Summary, as_json: bool) -> Result<ExitCode> {
    let text = match as_json {
        true => json::to_text(summary)?,
        false => format!("{}\n", one_line(summary)),
    };
    print(text.as_bytes())?;
    if let Some(lag) = summary.arrival_lag.filter(|lag| lag.late) {
        note(&format!(
            "{}: late: invocations were started so long after their arrivals that the delay is \
             {:.1} % of the turnaround of the short ones; this machine cannot generate the load",
            summary.scheduler.name,
            lag.of_short_turnaround * 100.0
        ));
    }
    let scheduler = &summary.scheduler;
    if scheduler.status == Status::Ok {
        return Ok(ExitCode::SUCCESS);
    }
    let what = faas_report::words::status(scheduler.status);
    note(&format!("{}: {what}: {}", scheduler.name, scheduler.detail));
    Ok(ExitCode::from(SCHEDULER_TROUBLE))
}

/// The main numbers of a summary.
fn one_line(summary: &Summary) -> String {
    let ms = |stats: Option<faas_data::stats::Stats>| {
        stats.map_or_else(|| "-".to_string(), |stats| format!("{:.1}", stats.mean))
    };
    let work = summary.fixed_work.as_ref();
    let work = work.map(|work| {
        let ratio = work.all.cpu_over_alone;
        format!(", fixed work took {ratio:.3} of its CPU time alone")
    });
    format!(
        "{}: mean turnaround {} ms (short {}, long {}), {} of {} invocations failed{}",
        summary.scheduler.name,
        ms(summary.turnaround_ms),
        ms(summary.short.turnaround_ms),
        ms(summary.long.turnaround_ms),
        summary.failed,
        summary.trace.invocations,
        work.unwrap_or_default(),
    )
}

fn summarize(args: SummarizeArgs) -> Result<()> {
    let trace = Trace::read(&args.trace)?;
    let records = match &args.result {
        Some(path) => result::read(path, &trace.invocations)?,
        None => Vec::new(),
    };
    let sink = Sink::open(&args.output)?;
    let kernel = args.kernel.unwrap_or_else(kernel_release);
    let stem = args.result.as_deref().and_then(Path::file_stem);
    let name = args
        .scheduler
        .unwrap_or_else(|| stem.unwrap_or_default().to_string_lossy().into_owned());
    let setting = Setting {
        cpus: args.cpus,
        scheduler: SchedulerInfo {
            name,
            version: args.scheduler_version.unwrap_or_else(|| kernel.clone()),
            args: args.scheduler_args,
            status: match &args.lost {
                Some(_) => Status::Lost,
                None if records.is_empty() => Status::NotLoaded,
                None => Status::Ok,
            },
            detail: args.lost.unwrap_or_default(),
        },
        kernel,
        accel: args.accel,
        sandbox: None,
    };
    let summary = summarise(&trace, &records, &setting, &[]);
    sink.commit(json::to_text(&summary)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for bad in ["0", "-1", "nan", "inf", "1e9", "x", ""] {
            assert!(load(bad).is_err() && factor(bad).is_err(), "{bad}");
        }
        assert_eq!(load("1.0"), Ok(1.0));
    }
}
