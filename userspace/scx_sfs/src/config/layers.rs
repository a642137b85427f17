//! Values from several sources, of which the last one wins.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde::{Deserialize, Serialize};

use super::keys;

/// Where a value comes from. Later ones win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// Nobody has given one.
    Default,
    /// A configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment,
    /// The command line.
    Option,
    /// `scx_sfs set`.
    Set,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment => f.write_str("environment"),
            Self::Option => f.write_str("option"),
            Self::Set => f.write_str("set"),
        }
    }
}

/// A key that somebody has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The name of the option's field.
    pub id: String,
    /// Its values as text: one, or those of a list.
    pub values: Vec<OsString>,
    /// Who has given it.
    pub source: Source,
}

impl Given {
    /// Returns whether it is a flag that is off, which contradicts nothing.
    fn is_off(&self, command: &Command) -> bool {
        let arg = keys::keys(command).find(|arg| arg.get_id() == self.id.as_str());
        arg.is_some_and(keys::is_flag) && self.values == ["false"]
    }

    /// Returns what a person would write for the value.
    pub fn text(&self) -> String {
        let words = self.values.iter().map(|value| value.to_string_lossy());
        words.collect::<Vec<_>>().join(",")
    }
}

/// Keys that a later source has replaced, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The key that no longer counts.
    pub given: Given,
    /// The key that has replaced it.
    pub by: Given,
}

/// Returns what the command line and the environment give, in this order of precedence.
pub fn of_matches(command: &Command, matches: &ArgMatches) -> [Vec<Given>; 2] {
    [
        (ValueSource::EnvVariable, Source::Environment),
        (ValueSource::CommandLine, Source::Option),
    ]
    .map(|(wanted, source)| {
        let is_given = |id: &str| matches.value_source(id) == Some(wanted);
        keys::keys(command)
            .map(keys::id)
            .filter(|id| is_given(id))
            .map(|id| Given {
                values: raw(matches, &id),
                id,
                source: source.clone(),
            })
            .collect()
    })
}

/// Returns the values of an option as they were given.
pub fn raw(matches: &ArgMatches, id: &str) -> Vec<OsString> {
    let values = matches.try_get_raw(id).ok().flatten();
    values.into_iter().flatten().map(OsString::from).collect()
}

/// Returns the keys that count, with the replaced ones. `layers` are in the order of precedence,
/// the last one wins: over the same key, and over keys that contradict its own.
pub fn merge(command: &Command, layers: &[&[Given]]) -> (Vec<Given>, Vec<Replaced>) {
    let (mut kept, mut replaced) = (Vec::<Given>::new(), Vec::new());
    for layer in layers.iter().rev() {
        let mut of_layer = Vec::new();
        for given in *layer {
            match kept.iter().find(|other| replaces(command, other, given)) {
                Some(by) => replaced.push(Replaced {
                    given: given.clone(),
                    by: by.clone(),
                }),
                None => of_layer.push(given.clone()),
            }
        }
        kept.extend(of_layer);
    }
    (kept, replaced)
}

fn replaces(command: &Command, winner: &Given, loser: &Given) -> bool {
    let contradict = || {
        let off = winner.is_off(command) || loser.is_off(command);
        !off && (excludes(command, &winner.id, &loser.id)
            || excludes(command, &loser.id, &winner.id))
    };
    winner.id == loser.id || contradict()
}

/// Returns whether the definition of `one` says that it contradicts `other`.
fn excludes(command: &Command, one: &str, other: &str) -> bool {
    let Some(arg) = keys::keys(command).find(|arg| arg.get_id() == one) else {
        return false;
    };
    let conflicts = command.get_arg_conflicts_with(arg);
    conflicts.iter().any(|arg| arg.get_id() == other)
}

/// Returns the command line that gives these keys.
pub fn arguments(command: &Command, given: &[Given]) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(command.get_name())];
    for one in given.iter().filter(|one| !one.is_off(command)) {
        let Some(arg) = keys::keys(command).find(|arg| arg.get_id() == one.id.as_str()) else {
            continue;
        };
        arguments.extend(one.values.iter().map(|value| keys::argument(arg, value)));
    }
    arguments
}
