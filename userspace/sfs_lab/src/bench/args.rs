//! The command line of `bench`.

use super::rows::{check_variables, known};
use super::series::{Loads, Seeds, Series};
use super::settings::{self, Accel, Machine, Row, Sandbox, Settings, Size, Source, Workload};
use anyhow::Result;
use clap::{value_parser, Args};
use sfs_jobs::failure::refuse;
use std::ffi::OsString;
use std::path::PathBuf;

/// The seed by default.
const SEED: &str = "5";

/// The load by default.
const LOAD: &str = "1.0";

/// The options, each of which may also be given as an environment variable.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub struct BenchArgs {
    /// The rows, in this order, separated by spaces
    #[arg(long, env = "SCHEDULERS", value_name = "ROWS", default_value = settings::SCHEDULERS, long_help = schedulers_help())]
    schedulers: String,
    /// A trace file, instead of a generated workload
    #[arg(long, env = "TRACE", value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The workload, one of `faasbench gen`: table1-artefact (the published figures), table1,
    /// lognormal and others, see `faasbench gen --help` and docs/workloads.md
    #[arg(
        long,
        env = "WORKLOAD",
        value_name = "NAME",
        default_value = "table1-artefact"
    )]
    workload: String,
    /// Number of invocations
    #[arg(short = 'n', long, env = "N", value_name = "N", default_value = "400")]
    invocations: String,
    /// Offered load [default: 1.0]
    #[arg(long, env = "LOAD", value_name = "LOAD")]
    load: Option<String>,
    /// Several loads, separated by spaces, in one table: "0.5 0.8 1.0 1.2"
    #[arg(long, env = "LOADS", value_name = "LOADS")]
    loads: Option<Loads>,
    /// Factor on the workload's times
    #[arg(long, env = "SCALE", value_name = "FACTOR", default_value = "0.25")]
    scale: String,
    /// Mean service time in ms that the sample is to have, instead of --scale
    #[arg(long, env = "MEAN_MS", value_name = "MS")]
    mean_ms: Option<String>,
    /// Seed of the workload [default: 5]
    #[arg(long, env = "SEED", value_name = "SEED")]
    seed: Option<String>,
    /// Several seeds, each with all rows: 20 for 1 to 20, or 21-40
    #[arg(long, env = "SEEDS", value_name = "SEEDS", long_help = SEEDS_HELP)]
    seeds: Option<Seeds>,
    /// Replay copies of one trace with arrivals moved by up to this much, as 50us: SEEDS of them
    #[arg(long, env = "JITTER", value_name = "JITTER")]
    jitter: Option<String>,
    /// With SEEDS or LOADS: show all figures also without this share, in per cent, of the first
    /// and of the last invocations
    #[arg(long, env = "TRIM", value_name = "TRIM", value_parser = value_parser!(u8).range(1..=49))]
    trim: Option<u8>,
    /// More options of the workload, separated by spaces, as "--arrivals bursty --io-share 0.75"
    #[arg(
        long,
        env = "WORKLOAD_ARGS",
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    workload_args: String,
    /// What serves the invocations
    #[arg(
        long,
        env = "SANDBOX",
        value_name = "SANDBOX",
        default_value = "process"
    )]
    sandbox: Sandbox,
    /// More options of `faasbench run`, separated by spaces, as "--prestart 2 --work fib"
    #[arg(
        long,
        env = "SANDBOX_ARGS",
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    sandbox_args: String,
    /// Where the results go, from the top of the repository
    #[arg(long, env = "OUT", value_name = "DIR", default_value = settings::OUT)]
    out: PathBuf,
    /// CPUs of the VM
    #[arg(long, env = "CPUS", value_name = "CPUS", default_value = "4", value_parser = value_parser!(u32).range(1..=255))]
    cpus: u32,
    /// Measure all rows again: 1
    #[arg(long, env = "FRESH", value_name = "FRESH", value_parser = ["1"], num_args = 0..=1, default_missing_value = "1")]
    fresh: Option<String>,
    #[command(flatten)]
    vms: VmArgs,
}

/// How the VMs are run.
#[derive(Debug, Clone, Args)]
pub struct VmArgs {
    /// The kernel: a version that vm/fetch-kernel knows, or an image; by default that of vm/run
    #[arg(long, env = "KERNEL", value_name = "KERNEL")]
    kernel: Option<String>,
    /// How the VM's CPUs are made
    #[arg(long, env = "ACCEL", value_name = "ACCEL", default_value = "icount")]
    accel: Accel,
    /// The machine, as for `vm/run --perturb`: a number, or `seed` for another one for each seed
    /// [default: 0; of the league: seed]
    #[arg(long, env = "PERTURB", value_name = "PERTURB")]
    pub perturb: Option<Machine>,
    /// VMs at the same time; by default one for each core with icount, else 1
    #[arg(long, env = "JOBS", value_name = "JOBS", value_parser = value_parser!(u32).range(1..=999))]
    jobs: Option<u32>,
    /// Seconds of real time after which a VM is given up
    #[arg(long, env = "TIMEOUT", value_name = "TIMEOUT", default_value_t = settings::TIMEOUT_S, value_parser = value_parser!(u32).range(1..=9_999_999))]
    timeout: u32,
}

impl VmArgs {
    /// Writes them into `settings`.
    pub fn apply(&self, settings: &mut Settings) {
        settings.machine = self.perturb.unwrap_or(Machine::One(0));
        settings.kernel.clone_from(&self.kernel);
        settings.accel = self.accel;
        settings.jobs = self.jobs;
        settings.timeout_s = self.timeout;
    }
}

/// The text below the options.
const AFTER: &str = r#"Settings of one row, in the environment. What is neither a letter nor a digit in the row's name is _ in theirs:
  ARGS_<row>     options of a sched_ext scheduler, as ARGS_scx_sfs="--slice-us 50000", or of sfs_sim, as ARGS_sfs="--slice-us 50000". ARGS_scx_sfs_short is for scx_sfs+short, which has none of scx_sfs's
  PROGRAM_<row>  another program for that row, as PROGRAM_scx_sfs_old=/tmp/scx_sfs for scx_sfs+old
  FILES_<row>    files for that row's guest, HOST:/GUEST separated by spaces; and what the scheduler writes to /out/<row>.state is kept in OUT. So one run can start with what another has learned (docs/policy.md)

With SEEDS the same holds for each seed: nothing that is measured is lost. `faasbench seeds OUT/series.json` prints the table again, also of an unfinished series.

The same command again runs only the rows that have no result yet: those that an interrupted run has left, those whose VM was lost, those whose program, options, kernel or benchmark have changed since. With another trace or another number of CPUs the folder starts afresh.

Exit status: 0; 2 bad usage; 3 a scheduler did not load, did not stay or took its machine with it (its row says so); 130 interrupted."#;

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// One trace.
    One(Settings),
    /// Several.
    Series(Series),
}

/// The help on `--seeds`.
const SEEDS_HELP: &str = "\
Several seeds, each with all rows: 20 for the seeds 1 to 20, or 21-40

The other rows are compared with the first, seed by seed: geometric means of the ratios, with \
intervals, corrected for their number (docs/statistics.md). Each seed has a folder in OUT; the \
tables are seeds.md and seeds.csv in OUT.";

impl BenchArgs {
    /// What is to be compared. `setting` has the settings of single rows, by the name of the
    /// environment variable.
    ///
    /// # Errors
    /// If two rows would have the same variable, or settings contradict each other.
    pub fn plan(self, setting: impl Fn(&str) -> Option<OsString>) -> Result<Plan> {
        if self.seeds.is_none() && self.loads.is_none() {
            if self.jitter.is_some() {
                refuse!("JITTER makes copies of a trace; SEEDS says how many");
            }
            if self.trim.is_some() {
                refuse!("TRIM is for the table of SEEDS or LOADS; set one of them");
            }
            return Ok(Plan::One(self.settings(setting)?));
        }
        self.check_series()?;
        let mut series = Series {
            seeds: self.given_seeds()?,
            loads: self.loads.clone().unwrap_or_default(),
            jitter: self.jitter.clone(),
            trim: self.trim,
            settings: Settings::new(Vec::new(), Source::File(PathBuf::new())),
        };
        series.settings = self.settings(setting)?;
        if series.settings.rows.len() < 2 {
            refuse!("a series compares rows with the first; SCHEDULERS names only one");
        }
        Ok(Plan::Series(series))
    }

    /// The seeds of a series.
    fn given_seeds(&self) -> Result<Seeds> {
        if let Some(seeds) = &self.seeds {
            return Ok(seeds.clone());
        }
        match self.seed.as_deref().unwrap_or(SEED).parse() {
            Ok(seed) => Ok(Seeds::one(seed)),
            Err(_) => refuse!("SEED is no whole number"),
        }
    }

    /// Refuses settings of a series that contradict each other.
    fn check_series(&self) -> Result<()> {
        if self.jitter.is_some() && self.seeds.is_none() {
            refuse!("JITTER makes copies of a trace; SEEDS says how many");
        }
        if self.seeds.is_some() && self.seed.is_some() && self.jitter.is_none() {
            refuse!("SEED is one seed, and SEEDS are several; set one of them");
        }
        if self.load.is_some() && self.loads.is_some() {
            refuse!("LOAD is one load, and LOADS are several; set one of them");
        }
        if self.trace.is_some() && self.loads.is_some() {
            refuse!("a TRACE has its own load; set a WORKLOAD with LOADS");
        }
        if self.trace.is_some() && self.jitter.is_none() {
            refuse!("a TRACE has no seeds; set a WORKLOAD with SEEDS, or JITTER for copies of the trace");
        }
        Ok(())
    }

    /// The settings. `setting` has those of single rows, by the name of the environment
    /// variable.
    ///
    /// # Errors
    /// If two rows would have the same variable.
    fn settings(self, setting: impl Fn(&str) -> Option<OsString>) -> Result<Settings> {
        let names = self.schedulers.split_whitespace();
        let rows: Vec<Row> = names
            .map(|name| Row::with_settings(name, &setting))
            .collect();
        check_variables(&rows)?;
        let source = match self.trace {
            Some(file) => Source::File(file),
            None => Source::Generated(Workload {
                name: self.workload,
                invocations: self.invocations,
                load: self.load.unwrap_or_else(|| LOAD.to_string()),
                size: self.mean_ms.map_or(Size::Scale(self.scale), Size::MeanMs),
                seed: self.seed.unwrap_or_else(|| SEED.to_string()),
                options: self.workload_args,
            }),
        };
        if self.vms.perturb == Some(Machine::Seed)
            && source.seed().is_none()
            && self.jitter.is_none()
        {
            refuse!("PERTURB=seed takes another machine for each seed, and a TRACE has none; set a number");
        }
        let mut settings = Settings::new(rows, source);
        settings.sandbox = self.sandbox;
        settings.sandbox_args = self.sandbox_args;
        settings.cpus = self.cpus;
        settings.out = self.out;
        settings.fresh = self.fresh.is_some();
        self.vms.apply(&mut settings);
        Ok(settings)
    }
}

/// The schedulers that rows can have, in words.
fn schedulers_help() -> String {
    format!(
        "The rows, in this order, separated by spaces\n\n\
        Known are {}. The first four are the kernel's own. scx_NAME is a program in \
        userspace/target/release, from `make peers`, or in PATH. The simulated ones are served \
        by sfs_sim on the same trace (`sfs` is the paper's policy, `scx_sfs` the live \
        scheduler). The same scheduler may stand there several times with labels, as \
        \"scx_sfs scx_sfs+short\".",
        known()
    )
}
