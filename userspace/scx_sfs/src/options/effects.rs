//! Options that would be ignored because of the values of others.

use clap::parser::ValueSource;
use clap::ArgMatches;
use sfs_hint::Address;

use super::{Options, Policy};
use sfs_bpf::boundary::Boundary;

/// When options have an effect. Options not listed always have one.
pub(super) struct Effect {
    /// Names of the options' fields.
    pub(super) options: &'static [&'static str],
    has_effect: fn(&Options) -> bool,
    /// The reason for no effect: the other option at fault.
    why: &'static str,
}

pub(super) const EFFECTS: [Effect; 9] = [
    Effect {
        options: &["json"],
        has_effect: |options| {
            options.stats.is_some() || options.monitor.is_some() || options.help_stats
        },
        why: "without --stats, --monitor or --help-stats",
    },
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
    Effect {
        options: &["metrics_mode"],
        has_effect: |options| options.metrics.has_unix_socket(),
        why: "without the path of a Unix socket for --metrics-listen",
    },
    Effect {
        options: &["metrics_functions"],
        has_effect: |options| options.metrics.are_wanted(),
        why: "without --metrics-listen or --metrics-textfile",
    },
];

/// Options allowed with --monitor.
pub(super) const WITH_MONITOR: [&str; 6] = [
    "monitor",
    "json",
    "verbose",
    "version",
    "help_stats",
    "completions",
];

/// Returns why an option has no effect because of the value of another, if so. (clap itself
/// rejects options that need another one, whatever its value.)
pub(crate) fn no_effect(options: &Options, id: &str) -> Option<&'static str> {
    let rule = EFFECTS.iter().find(|rule| rule.options.contains(&id))?;
    (!(rule.has_effect)(options)).then_some(rule.why)
}

/// Returns a sentence about an option that was given but would be ignored because of the value
/// of another, if any.
pub(super) fn without_effect(
    options: &Options,
    command: &clap::Command,
    matches: &ArgMatches,
) -> Option<String> {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let name = |id: &str| id.replace('_', "-");
    let given = || {
        let ids = command.get_arguments().map(|one| one.get_id().as_str());
        ids.filter(|id| is_given(id))
    };
    for id in given() {
        if let Some(why) = no_effect(options, id) {
            return Some(format!("--{} has no effect {why}", name(id)));
        }
    }
    options.monitor?;
    let id = given().find(|id| !WITH_MONITOR.contains(id))?;
    Some(format!(
        "--{} has no effect with --monitor, which schedules nothing",
        name(id)
    ))
}
