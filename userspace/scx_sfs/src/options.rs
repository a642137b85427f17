//! Command-line options, and what they come to.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use scx_sfs::hints::HintOptions;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use sfs_hint::Address;
use sfs_policy::{Config, OverloadPolicy, SlicePolicy};

use crate::boundary::{Boundary, Identity, Unit};
use crate::bpf_intf::{
    sfs_policy_kind_SFS_POLICY_FAIR as SFS_POLICY_FAIR,
    sfs_policy_kind_SFS_POLICY_LEARNED as SFS_POLICY_LEARNED,
    sfs_policy_kind_SFS_POLICY_SFS as SFS_POLICY_SFS,
};
use crate::cgroups::SandboxPattern;
use crate::hint_command::HintCommand;
use crate::shards::Shards;

/// S until the first window of arrivals is complete, in ns: between the short
/// and the long functions of every trace that we know of.
const INITIAL_SLICE_NS: u64 = 100_000_000;

/// A longest wait beyond this would come near the 30 s after which the kernel
/// ejects a scheduler that leaves a task waiting.
const MAX_FAIR_WAIT_MS: u64 = 10_000;

/// scx_sfs: a CPU scheduler for machines that run serverless functions.
///
/// A new process starts in FILTER, a global first-in-first-out queue, and is
/// not preempted there until it has used S of CPU time. What needs more is
/// demoted to FAIR, which shares the rest of the machine by virtual time. S
/// follows the arrivals: mean inter-arrival time of the last N, times CPUs.
#[derive(Debug, Parser)]
#[command(name = crate::NAME, disable_version_flag = true, args_conflicts_with_subcommands = true,
          after_help = crate::exit::HELP)]
pub struct Options {
    /// Without a command, scx_sfs schedules.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Fixed slice S in microseconds; S does not follow the arrivals
    /// [1..=60000000].
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=60_000_000),
          conflicts_with_all = ["slice_min_us", "slice_max_us", "iat_window"])]
    pub slice_us: Option<u64>,

    /// Least S in microseconds [1..=60000000].
    #[arg(long, value_name = "US", default_value = "1000",
          value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    pub slice_min_us: u64,

    /// Greatest S in microseconds [1..=60000000].
    #[arg(long, value_name = "US", default_value = "1000000",
          value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    pub slice_max_us: u64,

    /// N: arrivals that S is computed from, and after which it is computed
    /// anew [2..=8192].
    #[arg(long, value_name = "N", default_value = "100",
          value_parser = clap::value_parser!(u32).range(2..=8192))]
    pub iat_window: u32,

    /// O: overload begins when an invocation has waited O x S in FILTER, and is
    /// over when a new one would wait a third of that [0.1..=1000].
    #[arg(long, value_name = "O", default_value = "3", value_parser = parse_overload_factor,
          conflicts_with = "no_overload")]
    pub overload_factor: f64,

    /// Never switch to fair-only mode.
    #[arg(long)]
    pub no_overload: bool,

    /// Length of a turn in FAIR in microseconds [1000..=100000].
    #[arg(long, value_name = "US", default_value = "20000",
          value_parser = clap::value_parser!(u64).range(1000..=100_000))]
    pub fair_slice_us: u64,

    /// Longest wait of FAIR's head in milliseconds, whatever FILTER does
    /// [10..=10000].
    #[arg(long, value_name = "MS", default_value = "100",
          value_parser = clap::value_parser!(u64).range(10..=MAX_FAIR_WAIT_MS))]
    pub fair_max_wait_ms: u64,

    /// How many queues FILTER is split into, by last-level cache [auto, 1..=64]; auto: one
    /// up to 64 CPUs. Never more than CPUs. Across queues the order of arrival holds within 2 ms and a few
    /// dispatches.
    #[arg(long, value_name = "N", default_value = "auto")]
    pub filter_shards: Shards,

    /// How functions are scheduled.
    #[arg(long, value_enum, default_value = "sfs")]
    pub policy: Policy,

    /// With --policy learned: where what has been learned is kept, saved once a minute and
    /// at the end; without it, each start learns afresh.
    #[arg(long, value_name = "FILE")]
    pub learn_state: Option<PathBuf>,

    /// With --policy learned: what comes later goes before an invocation no more once
    /// equal sharing would have given it X times what its completion was expected to
    /// cost [1..=100]. More is better on average, and worse for the slowest.
    #[arg(long, value_name = "X", default_value = "3", value_parser = parse_ageing)]
    pub ageing: f64,

    /// What shares one credit.
    #[arg(
        long,
        value_enum,
        default_value = "process",
        requires_if("cgroup", "cgroup")
    )]
    pub unit: Unit,

    /// What begins an invocation; several, separated by commas. Two kinds that
    /// see the same invocation count it once.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "KIND",
        default_value = "fork,accept",
        requires_if("hint", "hint_listen")
    )]
    pub boundary: Vec<Boundary>,

    /// With --boundary idle: a unit that has slept for so many milliseconds begins a new
    /// invocation [1..=3600000].
    #[arg(long, value_name = "MS", default_value = "100",
          value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub idle_boundary_ms: u64,

    /// With --boundary receive: the port that the connection must lead to, such as
    /// that of the runtime API; 0: any connection, Unix sockets too.
    #[arg(long, value_name = "PORT", default_value = "0")]
    pub receive_port: u16,

    /// Functions are what runs in this cgroup and below, a path below
    /// /sys/fs/cgroup in which each name may be a pattern, as
    /// kubepods.slice/*/*/cri-containerd-*.scope; may be repeated. Without it,
    /// every process started after the scheduler is one, or under one before it.
    #[arg(long, value_name = "PATH", value_parser = SandboxPattern::parse)]
    pub cgroup: Vec<SandboxPattern>,

    /// With --cgroup: most sandboxes at a time; what runs in those beyond that is no
    /// function until others are gone [1..=1048576].
    #[arg(long, value_name = "N", default_value = "65536", requires = "cgroup",
          value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub max_sandboxes: u32,

    /// Most cgroups at a time that have a weight and a quota (those with the CPU
    /// controller). Beyond that mkdir fails: nobody would keep the quota of another
    /// [64..=1048576].
    #[arg(long, value_name = "N", default_value = "65536",
          value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub max_cgroups: u32,

    /// Schedule also where nobody keeps quotas: on a kernel that tells a scheduler of none
    /// (before 6.17), though a cgroup has one (cpu.max).
    #[arg(long)]
    pub ignore_quotas: bool,

    /// What tells one function from another where no hint names it; by default
    /// cgroup with --cgroup, else comm.
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

    /// Print the statistics of a running scx_sfs every SEC seconds; schedule
    /// nothing.
    #[arg(long, value_name = "SEC", value_parser = parse_interval)]
    pub monitor: Option<Duration>,

    /// Describe the statistics and exit.
    #[arg(long)]
    pub help_stats: bool,

    /// Length of the kernel's debug dump on an error exit, in bytes; 0: the
    /// kernel's default.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    pub exit_dump_len: u32,

    /// Say more, libbpf's messages included.
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// Log S and the mode at the start and at each change, with the monotonic
    /// clock's time, for programs to read.
    #[arg(long, env = "SCX_SFS_LOG_SLICE")]
    pub log_slice: bool,

    /// Have the kernel half log each demotion and mode switch to
    /// /sys/kernel/tracing/trace_pipe.
    #[arg(short = 'd', long)]
    pub debug: bool,

    /// Print the version and exit.
    #[arg(short = 'V', long)]
    pub version: bool,

    /// Print a completion script for SHELL and exit.
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<Shell>,

    /// Hints from the platform.
    #[command(flatten)]
    pub hints: HintOptions,

    /// Options of libbpf.
    #[command(flatten, next_help_heading = "Libbpf Options")]
    pub libbpf: LibbpfOpts,
}

/// When options have an effect. By default all have.
struct Effect {
    /// Their names, as those of the fields.
    options: &'static [&'static str],
    has_effect: fn(&Options) -> bool,
    /// Where they have none, with the option that this is due to.
    why: &'static str,
}

const EFFECTS: [Effect; 6] = [
    Effect {
        options: &["learn_state", "ageing"],
        has_effect: |options| options.policy == Policy::Learned,
        why: "without --policy learned",
    },
    Effect {
        options: &["overload_factor", "no_overload", "filter_shards"],
        has_effect: |options| options.policy != Policy::Fair,
        why: "with --policy fair, which has no FILTER",
    },
    Effect {
        options: &["idle_boundary_ms"],
        has_effect: |options| options.boundary.contains(&Boundary::Idle),
        why: "without --boundary idle",
    },
    Effect {
        options: &["receive_port"],
        has_effect: |options| options.boundary.contains(&Boundary::Receive),
        why: "without --boundary receive",
    },
    Effect {
        options: &[
            "hint_mode",
            "hint_owner",
            "hint_allow_uid",
            "hint_allow_cgroup",
        ],
        has_effect: |options| matches!(options.hints.hint_listen, Some(Address::Unix(_))),
        why: "without the path of a Unix socket for --hint-listen",
    },
    Effect {
        options: &["hint_allow_udp"],
        has_effect: |options| matches!(options.hints.hint_listen, Some(Address::Udp(_))),
        why: "without udp:... for --hint-listen",
    },
];

/// What may be given with --monitor.
const WITH_MONITOR: [&str; 5] = ["monitor", "verbose", "version", "help_stats", "completions"];

/// What else the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Tell a running scx_sfs that a process begins an invocation.
    Hint(HintCommand),
    /// List the functions that a running scx_sfs has learned of: how often each has
    /// completed, its service times, the rank of a new invocation (lower is earlier),
    /// and its share of all work.
    Functions {
        /// Most that are shown, those with most work first [1..=1000].
        #[arg(long, short = 'n', default_value = "50", value_name = "N",
              value_parser = clap::value_parser!(u16).range(1..=1000))]
        count: u16,
    },
}

/// How functions are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// First in, first out for S of CPU time, fair shares afterwards.
    Sfs,
    /// By what is learned of each function's service times; as sfs until something
    /// is known, and if it cannot be told to the kernel half.
    Learned,
    /// Fair shares for all.
    Fair,
}

impl Policy {
    /// Returns the kernel half's number for it.
    pub fn number(self) -> u32 {
        match self {
            Self::Sfs => SFS_POLICY_SFS,
            Self::Learned => SFS_POLICY_LEARNED,
            Self::Fair => SFS_POLICY_FAIR,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// What the policy is told.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How S follows from the mean IAT.
    pub slice: SlicePolicy,
    /// When fair-only mode goes on and off; `None`: never.
    pub overload: Option<OverloadPolicy>,
    /// N.
    pub window: NonZeroUsize,
}

impl Options {
    /// Returns what begins an invocation: what was asked for, and hints if there is
    /// somebody who listens for them.
    pub fn boundaries(&self) -> impl Iterator<Item = Boundary> + '_ {
        let hints = self.hints.hint_listen.as_ref().map(|_| Boundary::Hint);
        self.boundary.iter().copied().chain(hints)
    }

    /// Returns what tells one function from another.
    pub fn identity(&self) -> Identity {
        match self.identity {
            Some(identity) => identity,
            None if self.cgroup.is_empty() => Identity::Comm,
            None => Identity::Cgroup,
        }
    }

    /// Returns the options that the program was started with. Ends it with a sentence
    /// if they are wrong, contradict each other, or one of them would have no effect.
    pub fn from_command_line() -> Self {
        Self::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// As [`from_command_line`](Self::from_command_line), of any arguments; the first is
    /// the program's name.
    ///
    /// # Errors
    ///
    /// They are wrong; the error says what, and how.
    pub fn from_arguments<T>(arguments: impl IntoIterator<Item = T>) -> Result<Self, clap::Error>
    where
        T: Into<OsString> + Clone,
    {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        let options = Self::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
        match options.without_effect(&command, &matches) {
            Some(sentence) => Err(command.error(ErrorKind::ArgumentConflict, sentence)),
            None => Ok(options),
        }
    }

    /// Returns a sentence about an option that was given and would be ignored because of
    /// the value of another, if there is one. (clap itself refuses those that need another
    /// option, whatever its value.)
    fn without_effect(&self, command: &clap::Command, matches: &ArgMatches) -> Option<String> {
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let rules = EFFECTS.iter().filter(|rule| !(rule.has_effect)(self));
        let ignored = |rule: &Effect| rule.options.iter().copied().find(|id| is_given(id));
        let name = |id: &str| id.replace('_', "-");
        for rule in rules {
            if let Some(id) = ignored(rule) {
                return Some(format!("--{} has no effect {}", name(id), rule.why));
            }
        }
        self.monitor?;
        let mut given = command.get_arguments().map(|one| one.get_id().as_str());
        let id = given.find(|id| is_given(id) && !WITH_MONITOR.contains(id))?;
        Some(format!(
            "--{} has no effect with --monitor, which schedules nothing",
            name(id)
        ))
    }

    /// Turns the options into what the policy is told.
    ///
    /// # Errors
    ///
    /// Options that contradict each other.
    pub fn settings(&self) -> Result<Settings> {
        let slice = match self.slice_us {
            Some(us) => SlicePolicy::fixed(us * 1000),
            None => SlicePolicy::new(self.slice_min_us * 1000, self.slice_max_us * 1000),
        }
        .context("--slice-min-us and --slice-max-us do not fit together")?;
        let factor = self.overload_factor;
        let overload = (!self.no_overload)
            .then(|| OverloadPolicy::new(factor, factor / 3.0))
            .transpose()
            .context("--overload-factor is out of range")?;
        let window = NonZeroUsize::new(self.iat_window as usize).context("--iat-window is 0")?;
        Ok(Settings {
            slice,
            overload,
            window,
        })
    }
}

impl Settings {
    /// Returns the configuration of a controller for `cpus` CPUs.
    pub fn config(&self, cpus: u32) -> Config {
        Config {
            window: self.window,
            slice: self.slice,
            initial_slice_ns: INITIAL_SLICE_NS,
            overload: self.overload,
            cpus,
        }
    }
}

fn parse_overload_factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.1..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("want a number from 0.1 to 1000".to_string()),
    }
}

fn parse_ageing(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("want a number from 1 to 100".to_string()),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("want seconds, from 0.01 to 86400".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::from_arguments([&["scx_sfs"], arguments].concat())
    }

    #[test]
    fn defaults_make_sense_together() {
        let settings = parse(&[]).unwrap().settings().unwrap();
        let overload = settings.overload.unwrap();
        assert_eq!(overload.enter_ns(1_000_000), 3_000_000);
        assert_eq!(overload.exit_ns(1_000_000), 1_000_000);
        assert_eq!(settings.window.get(), 100);
        assert!(!settings.slice.is_fixed());
    }

    #[test]
    fn a_fixed_slice_is_fixed() {
        let settings = parse(&["--slice-us", "5000"]).unwrap().settings().unwrap();
        assert!(settings.slice.is_fixed());
        assert_eq!(settings.slice.slice_ns(1, 1), 5_000_000);
    }

    #[test]
    fn contradictions_and_nonsense_are_refused() {
        for arguments in [
            &["--slice-us", "0"][..],
            &["--slice-us", "1000", "--slice-min-us", "10"],
            &["--slice-us", "1000", "--iat-window", "10"],
            &["--no-overload", "--overload-factor", "2"],
            &["--overload-factor", "NaN"],
            &["--overload-factor", "-1"],
            &["--stats", "1", "--monitor", "1"],
            &["--stats", "0"],
            &["--iat-window", "1"],
            &["--fair-max-wait-ms", "30000"],
            &["--no-such-option"],
            &["stray"],
            &["--hint-listen", "udp:0.0.0.0:4040"],
            &["--hint-listen", "nowhere"],
            &["--hint-mode", "0660"],
            &["--hint-listen", "/run/x", "--hint-mode", "rw"],
            &["--hint-listen", "/run/x", "--hint-owner", "no such user"],
            &["--hint-listen", "/run/x", "--hint-allow-uid", "65534"],
            &["--hint-listen", "/run/x", "--hint-allow-cgroup", "/"],
            &["--hint-listen", "/run/x", "--hint-rate", "0"],
            &["hint"],
            &["hint", "0"],
            &["hint", "12", "--stdin"],
            &["hint", "12", "--rate", "5"],
            &["hint", "12", "--function", ""],
            &["hint", "--to", "udp:192.0.2.1:1", "12"],
            &["--partial", "hint", "12"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?} was taken");
        }
    }

    #[test]
    fn boundaries_are_a_list() {
        let options = parse(&["--boundary", "accept,exec"]).unwrap();
        assert_eq!(options.boundary, [Boundary::Accept, Boundary::Exec]);
        assert!(parse(&["--boundary", "accept,never"]).is_err());
        assert_eq!(parse(&[]).unwrap().identity(), Identity::Comm);
        let options = parse(&["--cgroup", "f/*"]).unwrap();
        assert_eq!(options.identity(), Identity::Cgroup);
    }

    #[test]
    fn ageing_has_a_range() {
        assert!((parse(&[]).unwrap().ageing - 3.0).abs() < 1e-9);
        let with = |ageing| parse(&["--policy", "learned", "--ageing", ageing]);
        assert!((with("1.5").unwrap().ageing - 1.5).abs() < 1e-9);
        for wrong in ["0", "0.9", "101", "nan", "much"] {
            assert!(with(wrong).is_err(), "{wrong} was taken");
        }
    }

    /// The first line of what is said of options that are refused.
    fn refused(arguments: &str) -> String {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let error = parse(&arguments).expect_err("they were taken");
        let said = error.to_string();
        let mut lines = said.lines().take_while(|line| !line.is_empty());
        lines.by_ref().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn no_option_is_ignored() {
        for (arguments, option, other) in [
            ("--ageing 2", "--ageing", "--policy learned"),
            ("--policy sfs --ageing 2", "--ageing", "--policy learned"),
            ("--learn-state x", "--learn-state", "--policy learned"),
            (
                "--policy fair --learn-state x",
                "--learn-state",
                "--policy learned",
            ),
            (
                "--policy fair --no-overload",
                "--no-overload",
                "--policy fair",
            ),
            (
                "--policy fair --overload-factor 2",
                "--overload-factor",
                "--policy fair",
            ),
            (
                "--policy fair --filter-shards 2",
                "--filter-shards",
                "--policy fair",
            ),
            (
                "--idle-boundary-ms 5",
                "--idle-boundary-ms",
                "--boundary idle",
            ),
            (
                "--boundary fork --receive-port 80",
                "--receive-port",
                "--boundary receive",
            ),
            (
                "--hint-listen udp:[::1]:9 --hint-mode 0660",
                "--hint-mode",
                "--hint-listen",
            ),
            (
                "--hint-listen udp:[::1]:9 --hint-owner root",
                "--hint-owner",
                "--hint-listen",
            ),
            (
                "--hint-listen udp:[::1]:9 --hint-allow-uid root",
                "--hint-allow-uid",
                "--hint-listen",
            ),
            (
                "--hint-listen udp:[::1]:9 --hint-allow-cgroup x",
                "--hint-allow-cgroup",
                "--hint-listen",
            ),
            (
                "--hint-listen /run/x --hint-allow-udp",
                "--hint-allow-udp",
                "udp:",
            ),
            ("--monitor 1 --partial", "--partial", "--monitor"),
            ("--monitor 1 --policy learned", "--policy", "--monitor"),
            (
                "--monitor 1 --hint-listen /run/x",
                "--hint-listen",
                "--monitor",
            ),
        ] {
            let said = refused(arguments);
            let names = said.contains(&format!("{option} has no effect")) && said.contains(other);
            assert!(names, "{arguments}: {said}");
        }
        // What clap finds by itself.
        for (arguments, other) in [
            ("--unit cgroup", "--cgroup"),
            ("--identity cgroup", "--cgroup"),
            ("--identity parent", "--cgroup"),
            ("--max-sandboxes 5", "--cgroup"),
            ("--boundary fork,hint", "--hint-listen"),
            ("--hint-mode 0660", "--hint-listen"),
            ("--hint-owner root", "--hint-listen"),
            ("--hint-allow-uid 5", "--hint-listen"),
            ("--hint-allow-cgroup x", "--hint-listen"),
            ("--hint-allow-udp", "--hint-listen"),
            ("--hint-rate 5", "--hint-listen"),
            ("--hint-service-time", "--hint-listen"),
        ] {
            let said = refused(arguments);
            assert!(said.contains(other), "{arguments}: {said}");
        }
    }

    #[test]
    fn options_that_belong_together_are_taken() {
        for arguments in [
            "--policy learned --ageing 2 --learn-state x --no-overload --filter-shards 2",
            "--policy fair --slice-us 1000",
            "--boundary fork,idle,receive --idle-boundary-ms 5 --receive-port 80",
            "--boundary hint --hint-listen /run/x --hint-mode 0660 --hint-owner root",
            "--hint-listen /run/x --hint-allow-uid 5,root --hint-allow-cgroup a/b --hint-allow-cgroup c",
            "--hint-listen udp:127.0.0.1:9 --hint-allow-udp --hint-rate 5 --hint-service-time",
            "--unit cgroup --identity parent --cgroup f/* --max-sandboxes 5",
            "--unit thread --identity comm",
            "--monitor 1 --verbose",
            "--monitor 1 --version",
        ] {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            let taken = parse(&arguments);
            assert!(taken.is_ok(), "{arguments:?}: {}", taken.unwrap_err());
        }
    }

    #[test]
    fn rules_are_about_options_that_there_are() {
        let command = Options::command();
        let is_there = |id: &str| command.get_arguments().any(|one| one.get_id() == id);
        let ruled = EFFECTS.iter().flat_map(|rule| rule.options);
        for id in ruled.chain(&WITH_MONITOR) {
            assert!(is_there(id), "there is no {id}");
        }
    }

    #[test]
    fn hints_are_private_by_default() {
        let hints = parse(&["--hint-listen", "/run/x"]).unwrap().hints;
        assert_eq!(hints.hint_mode, 0o600);
        assert_eq!(hints.hint_listen, "unix:/run/x".parse().ok());
        assert!(parse(&[]).unwrap().hints.hint_listen.is_none());
    }

    #[test]
    fn bounds_of_s_must_be_in_order() {
        let options = parse(&["--slice-min-us", "2000", "--slice-max-us", "1000"]).unwrap();
        assert!(options.settings().is_err());
    }
}
