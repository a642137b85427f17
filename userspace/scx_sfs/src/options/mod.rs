//! Command-line options and their conversion.
//!
//! | module | purpose |
//! |---|---|
//! | `effects` | options that would be ignored because of others |
//! | `convert` | from options to settings |
//! | `values` | parsers of numbers |

mod convert;
pub(crate) mod effects;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use sfs_policy::defaults;

use crate::config::check::CheckCommand;
use crate::config::commands::{ConfigCommand, SetCommand};
use crate::config::keys;
use crate::config::reload::ReloadCommand;
use crate::hint_command::HintCommand;
use sfs_advice::AdviseCommand;
use sfs_bpf::boundary::{Boundary, Identity, Unit};
use sfs_bpf::bpf_intf::{
    SFS_DEFAULT_AGEING_TENTHS, SFS_DEFAULT_FAIR_MAX_WAIT_NS, SFS_DEFAULT_FAIR_SLICE_NS,
    SFS_DEFAULT_IAT_WINDOW, SFS_DEFAULT_IDLE_BOUNDARY_NS, SFS_DEFAULT_MAX_GROUPS,
    SFS_DEFAULT_MAX_SANDBOXES, SFS_IAT_SLOTS, SFS_WATCHDOG_GUARD_NS,
};
pub use sfs_bpf::kernel::Policy;
use sfs_bpf::shards::Shards;
use sfs_cgroups::SandboxPattern;
use sfs_listener::HintOptions;
use sfs_log::Form as LogForm;
use sfs_metrics::MetricsOptions;
use sfs_statistics::MAX_FUNCTIONS;
use sfs_top::TopCommand;
use sfs_trace::commands::{ExplainCommand, TraceCommand};
use values::{parse_ageing, parse_interval, parse_overload_factor};

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// A longer wait would come near 30 s, after which the kernel ejects a scheduler that leaves a
/// task waiting.
const MAX_FAIR_WAIT_MS: u64 = SFS_WATCHDOG_GUARD_NS / NS_PER_MS;

/// The IAT map has room for two windows.
const MAX_IAT_WINDOW: i64 = SFS_IAT_SLOTS as i64 / 2;

/// Returns the end of the help: examples and exit statuses.
fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", sfs_bpf::exit::help())
}

const EXAMPLES: &str = "\
Examples, as root:
  scx_sfs check                                  # is this machine ready?
  scx_sfs advise --record 60s                    # would it gain from scx_sfs?
  scx_sfs                                        # schedule, until Ctrl-C
  scx_sfs --cgroup 'functions/*' --stats 1       # functions are in these cgroups
  scx_sfs --monitor 1                            # statistics of the running one
  scx_sfs --monitor 1 --json | jq .slice_us      # the same for programs";

/// scx_sfs: a CPU scheduler for machines that run serverless functions.
///
/// It learns the CPU time of each function, and ranks invocations by it (--policy learned, the
/// default). With --policy sfs a new process starts in FILTER, a global first-in-first-out queue,
/// where it runs without preemption for up to S of CPU time. If it needs more, it is demoted to
/// FAIR, which shares the rest of the machine by virtual time. S follows the arrivals: it is the
/// mean inter-arrival time of the last N arrivals x the number of CPUs.
#[derive(Debug, Clone, Parser)]
#[command(name = sfs_bpf::NAME, disable_version_flag = true, args_conflicts_with_subcommands = true,
          max_term_width = 80, after_help = after_help())]
pub struct Options {
    /// Without a command, scx_sfs schedules.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Fixed slice S in microseconds, not adapted to the arrivals
    /// [1..=60000000].
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=60_000_000),
          conflicts_with_all = ["slice_min_us", "slice_max_us", "iat_window"])]
    pub slice_us: Option<u64>,

    /// Minimum S in microseconds [1..=60000000].
    #[arg(long, value_name = "US", default_value_t = defaults::SLICE_MIN_NS / NS_PER_US,
          value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    pub slice_min_us: u64,

    /// Maximum S in microseconds [1..=60000000].
    #[arg(long, value_name = "US", default_value_t = defaults::SLICE_MAX_NS / NS_PER_US,
          value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    pub slice_max_us: u64,

    /// N: S is computed after every N arrivals, from those N [2..=8192].
    #[arg(long, value_name = "N", default_value_t = SFS_DEFAULT_IAT_WINDOW,
          value_parser = clap::value_parser!(u32).range(2..=MAX_IAT_WINDOW))]
    pub iat_window: u32,

    /// O: overload begins when an invocation has waited O x S in FILTER, and
    /// ends when a new one would wait a third of that [0.1..=1000].
    #[arg(long, value_name = "O", default_value_t = defaults::OVERLOAD_FACTOR,
          value_parser = parse_overload_factor, conflicts_with = "no_overload")]
    pub overload_factor: f64,

    /// Never switch to fair-only mode.
    #[arg(long)]
    pub no_overload: bool,

    /// Length of a turn in FAIR in microseconds [1000..=100000].
    #[arg(long, value_name = "US", default_value_t = u64::from(SFS_DEFAULT_FAIR_SLICE_NS) / NS_PER_US,
          value_parser = clap::value_parser!(u64).range(1000..=100_000))]
    pub fair_slice_us: u64,

    /// Maximum wait of the head of FAIR in milliseconds, regardless of FILTER
    /// [10..=10000].
    #[arg(long, value_name = "MS", default_value_t = u64::from(SFS_DEFAULT_FAIR_MAX_WAIT_NS) / NS_PER_MS,
          value_parser = clap::value_parser!(u64).range(10..=MAX_FAIR_WAIT_MS))]
    pub fair_max_wait_ms: u64,

    /// Number of queues that FILTER is split into, by last-level cache [auto,
    /// 1..=64]; at most one per CPU. auto: one queue for up to 64 CPUs. Between
    /// queues the order of arrival holds within 2 ms and a few dispatches.
    #[arg(long, value_name = "N", default_value = "auto")]
    pub filter_shards: Shards,

    /// How functions are scheduled.
    #[arg(long, value_enum, default_value = "learned")]
    pub policy: Policy,

    /// With --policy learned: file for the learned state, saved once a minute
    /// and at exit; without it, each start learns from scratch. The service has
    /// /var/lib/scx_sfs/learned by default.
    #[arg(long, value_name = "FILE")]
    pub learn_state: Option<PathBuf>,

    /// With --policy learned: an invocation waits for later ones until equal
    /// sharing would have given it X times the expected cost of its completion
    /// [1..=100]. A larger X improves the mean, and delays the slowest.
    #[arg(long, value_name = "X", default_value_t = f64::from(SFS_DEFAULT_AGEING_TENTHS) / 10.0,
          value_parser = parse_ageing)]
    pub ageing: f64,

    /// Tasks that share one credit.
    #[arg(
        long,
        value_enum,
        default_value = "process",
        requires_if("cgroup", "cgroup")
    )]
    pub unit: Unit,

    /// Events that begin an invocation, separated by commas. Two events of the
    /// same invocation count once.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "KIND",
        default_value = "fork,accept",
        requires_if("hint", "hint_listen")
    )]
    pub boundary: Vec<Boundary>,

    /// With --boundary idle: minimum sleep of a unit, in milliseconds, before a
    /// wake-up begins an invocation [1..=3600000].
    #[arg(long, value_name = "MS", default_value_t = u64::from(SFS_DEFAULT_IDLE_BOUNDARY_NS) / NS_PER_MS,
          value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub idle_boundary_ms: u64,

    /// With --boundary receive: remote port of the connections that count, such
    /// as that of the runtime API; 0: all connections, including Unix sockets.
    #[arg(long, value_name = "PORT", default_value = "0")]
    pub receive_port: u16,

    /// Tasks in this cgroup and below are functions. It is a path below
    /// /sys/fs/cgroup in which each name may be a pattern, such as
    /// kubepods.slice/*/*/cri-containerd-*.scope; may be repeated. Without it,
    /// every process started while scx_sfs was loaded is a function.
    #[arg(long, value_name = "PATH", value_parser = SandboxPattern::parse)]
    pub cgroup: Vec<SandboxPattern>,

    /// With --cgroup: maximum number of sandboxes at a time; tasks in further
    /// ones are not functions until others are gone [1..=1048576].
    #[arg(long, value_name = "N", default_value_t = SFS_DEFAULT_MAX_SANDBOXES, requires = "cgroup",
          value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub max_sandboxes: u32,

    /// Maximum number of cgroups with a weight and a quota at a time (those
    /// with the CPU controller). Beyond it mkdir fails, since the quota of a
    /// further cgroup would not be enforced [64..=1048576].
    #[arg(long, value_name = "N", default_value_t = SFS_DEFAULT_MAX_GROUPS,
          value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub max_cgroups: u32,

    /// Schedule even if a cgroup has a quota (cpu.max) that is not enforced,
    /// because the kernel does not report quotas to a scheduler (before 6.17).
    #[arg(long)]
    pub ignore_quotas: bool,

    /// How functions are told apart if no hint names them; default: cgroup with
    /// --cgroup, otherwise comm.
    #[arg(long, value_enum, value_name = "BY",
          requires_ifs([("cgroup", "cgroup"), ("parent", "cgroup")]))]
    pub identity: Option<Identity>,

    /// Schedule only tasks with policy SCHED_EXT; all others stay with the
    /// default scheduler.
    #[arg(long)]
    pub partial: bool,

    /// Print statistics every SEC seconds while scheduling.
    #[arg(long, value_name = "SEC", value_parser = parse_interval, conflicts_with = "monitor")]
    pub stats: Option<Duration>,

    /// Print the statistics of a running scx_sfs every SEC seconds, without
    /// scheduling.
    #[arg(long, value_name = "SEC", value_parser = parse_interval)]
    pub monitor: Option<Duration>,

    /// With --stats, --monitor or --help-stats: print JSON, one line each time.
    #[arg(long)]
    pub json: bool,

    /// Describe the statistics and exit.
    #[arg(long)]
    pub help_stats: bool,

    /// Length of the kernel's debug dump after an error, in bytes; 0: the
    /// kernel's default.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    pub exit_dump_len: u32,

    /// Log more, including libbpf's messages.
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// Log S and the mode at the start and at each change, with the time of the
    /// monotonic clock, for programs to read.
    #[arg(long, env = "SCX_SFS_LOG_SLICE")]
    pub log_slice: bool,

    /// Form of the log. auto: the journal's, with fields, if standard error is
    /// systemd's journal, else text.
    #[arg(long, value_enum, value_name = "FORM", default_value = "auto")]
    pub log_format: LogForm,

    /// Make the kernel half log each demotion and mode switch to
    /// /sys/kernel/tracing/trace_pipe.
    #[arg(short = 'd', long)]
    pub debug: bool,

    /// Print the version and exit.
    #[arg(short = 'V', long)]
    pub version: bool,

    /// Print a completion script for SHELL and exit.
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<Shell>,

    /// Read FILE as well, after /etc/scx_sfs/config.toml: its keys win over those
    /// there, and options win over both. The keys are the names of the options;
    /// `scx_sfs config` prints all of them.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Leave out keys of configuration files that this version does not know,
    /// with a warning; without it they are errors.
    #[arg(long)]
    pub ignore_unknown: bool,

    /// Hints from the platform.
    #[command(flatten)]
    pub hints: HintOptions,

    /// Metrics for Prometheus.
    #[command(flatten)]
    pub metrics: MetricsOptions,

    /// Options of libbpf.
    #[command(flatten, next_help_heading = "Libbpf Options")]
    pub libbpf: LibbpfOpts,
}

/// Other commands of the program.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Check whether this machine and the configuration are ready for scx_sfs.
    Check(CheckCommand),
    /// Print the configuration: each key, its value, and where that comes from.
    Config(ConfigCommand),
    /// Change a key of the running scx_sfs, without a reload.
    Set(SetCommand),
    /// Read the configuration files again, and apply the keys that can change at run time.
    Reload(ReloadCommand),
    /// Tell a running scx_sfs that a process begins an invocation.
    Hint(HintCommand),
    /// Say what scx_sfs would change on this machine, without loading it.
    Advise(AdviseCommand),
    /// Write a trace of invocations for Perfetto's viewer.
    Trace(TraceCommand),
    /// Tell why requests were slow: where their time went, and who ran instead.
    Explain(ExplainCommand),
    /// List the functions that a running scx_sfs has learned: number of
    /// completions, service times, rank of a new invocation (lower is earlier),
    /// and share of all work.
    #[command(after_help = "\
Examples:
  scx_sfs functions -n 10
  scx_sfs functions --json | jq '.[] | {function, p99_ms}'")]
    Functions {
        /// Maximum number of functions to list, those with the most work first
        /// [1..=1000].
        #[arg(long, short = 'n', default_value = "50", value_name = "N",
              value_parser = clap::value_parser!(u16).range(1..=MAX_FUNCTIONS as i64))]
        count: u16,
        /// Print JSON: a list of functions.
        #[arg(long)]
        json: bool,
    },
    /// Show a running scx_sfs on the terminal: load, mode, queues, delays,
    /// functions, sandboxes.
    Top(TopCommand),
    /// Write man pages, completions and example configurations into FOLDER,
    /// all made from the definition of the options: for packages.
    #[command(hide = true, after_help = "Example:\n  scx_sfs generate out/share")]
    Generate {
        /// The folder; it is made if it does not exist.
        folder: PathBuf,
    },
}

impl Options {
    /// Returns the events that begin an invocation: the requested ones, and hints if the loader
    /// listens for them.
    pub fn boundaries(&self) -> impl Iterator<Item = Boundary> + '_ {
        let hints = self.hints.hint_listen.as_ref().map(|_| Boundary::Hint);
        self.boundary.iter().copied().chain(hints)
    }

    /// Returns how functions are told apart.
    pub fn identity(&self) -> Identity {
        match self.identity {
            Some(identity) => identity,
            None if self.cgroup.is_empty() => Identity::Comm,
            None => Identity::Cgroup,
        }
    }

    /// Parses a command line; the first argument is the program's name. Reads no files.
    ///
    /// # Errors
    ///
    /// They are invalid; the error says which, and why.
    pub fn from_arguments<T>(arguments: impl IntoIterator<Item = T>) -> Result<Self, clap::Error>
    where
        T: Into<OsString> + Clone,
    {
        let mut command = keys::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        let options = Self::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
        match effects::without_effect(&options, &command, &matches) {
            Some(sentence) => Err(command.error(ErrorKind::ArgumentConflict, sentence)),
            None => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests;
