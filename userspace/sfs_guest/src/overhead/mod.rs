//! `overhead`: what scx_sfs costs, one measurement in each guest. The figures are left as
//! files in [`OUT`].
//!
//! vm/run starts it with real-time priority, so that no crowd delays it; the scheduler and
//! what it is measured with run without.

mod costs;
mod lifetime;
mod machine;
mod replay;

use std::process::Command;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::loader::Loader;
use crate::programs::cpus;

/// Where the figures go.
const OUT: &str = "/out";

/// The measurement.
#[derive(Debug, Args)]
pub struct OverheadArgs {
    #[command(subcommand)]
    what: What,
    /// Take all CPUs away but the first; tasks may use several nevertheless
    #[arg(long)]
    one_cpu: bool,
}

/// OPTIONS are options of scx_sfs, separated by spaces.
#[derive(Debug, Subcommand)]
enum What {
    /// Each program, with invocations of 1 ms: two of them, and four for each CPU
    Cpus {
        #[arg(allow_hyphen_values = true)]
        options: String,
    },
    /// Each program with as many tasks waiting, in FILTER, in FAIR, and in rank order
    Queue {
        #[arg(allow_hyphen_values = true)]
        options: String,
        #[arg(required = true)]
        lengths: Vec<usize>,
    },
    /// Time and memory to load and unload, without tasks and with so many that sleep
    Tasks {
        #[arg(allow_hyphen_values = true)]
        options: String,
        count: usize,
    },
    /// The same without sandboxes and with so many empty ones
    Sandboxes {
        #[arg(allow_hyphen_values = true)]
        options: String,
        count: usize,
    },
    /// CPU time of the loader while so many threads a second begin and end, by policy
    Loaders {
        rate: u32,
        #[arg(allow_hyphen_values = true)]
        options: String,
    },
    /// Each program while faasbench replays /trace.csv
    Trace {
        /// What serves the invocations
        sandbox: String,
        /// More options of faasbench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

/// Measures one of them.
///
/// # Errors
/// If a program fails, or the kernel has complained.
pub fn run(args: OverheadArgs) -> Result<()> {
    machine::lift_limits()?;
    if args.one_cpu {
        machine::take_cpus_away()?;
    }
    let cpus = cpus();
    match args.what {
        What::Cpus { options } => costs::by_cpus(cpus, &options),
        What::Queue { options, lengths } => costs::by_queue(cpus, &options, &lengths),
        What::Tasks { options, count } => lifetime::tasks(&options, count),
        What::Sandboxes { options, count } => lifetime::sandboxes(&options, count),
        What::Loaders { rate, options } => replay::loaders(rate, &options),
        What::Trace { sandbox, options } => replay::trace(cpus, &sandbox, &options),
    }?;
    machine::expect_no_complaint()
}

/// The command for a program with the usual priority.
fn usual(program: &str) -> Command {
    let mut command = Command::new("chrt");
    command.args(["-o", "0", program]);
    command
}

/// Loads scx_sfs with options that are separated by spaces.
fn load(options: &str) -> Result<Loader> {
    let log = machine::out("scx_sfs.log");
    Loader::start(usual("scx_sfs").args(options.split_whitespace()), &log)
}
