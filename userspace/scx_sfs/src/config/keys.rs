//! The keys of a configuration: the long options that say how to schedule.
//!
//! A key is the name of its option, so that there is one list of both. What an option is for once,
//! such as `--help-stats`, is no key.

use std::ffi::{OsStr, OsString};

use clap::builder::ValueRange;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::options::Options;

/// Options that are no keys, since they ask for something else than scheduling, or say where
/// the keys are.
pub const NO_KEYS: [&str; 7] = [
    "config",
    "ignore_unknown",
    "monitor",
    "help_stats",
    "version",
    "completions",
    "help",
];

/// Keys whose values `scx_sfs set` can change while the scheduler is loaded.
pub const AT_RUN_TIME: [&str; 9] = [
    "slice_us",
    "slice_min_us",
    "slice_max_us",
    "overload_factor",
    "log_slice",
    "hint_rate",
    "hint_service_time",
    "hint_allow_uid",
    "hint_allow_cgroup",
];

/// The exit statuses of a command that has no others.
const STATUSES: &str =
    "Exit status: 0 done; 1 an error, which a sentence explains; 2 wrong options.";

/// Returns the definition of the command line. Flags that are keys also take `=false`, which
/// undoes the key of a file.
pub fn command() -> Command {
    command_with_state("")
}

/// Returns the same, with a default for the learned state if systemd has given this service
/// folders for its state, separated by colons.
pub fn command_with_state(folders: &str) -> Command {
    // It lives as long as the program, which reads its command line a few times.
    let folder = folders.split(':').next().filter(|one| !one.is_empty());
    let learned: Option<&'static str> = folder.map(|one| &*format!("{one}/learned").leak());
    let mut command = Options::command().mut_args(|arg| {
        let id = arg.get_id().as_str();
        let is_set_true = matches!(arg.get_action(), ArgAction::SetTrue);
        if let ("learn_state", Some(file)) = (id, learned) {
            return arg.default_value(file);
        }
        if !is_set_true || NO_KEYS.contains(&id) {
            return arg;
        }
        arg.action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .default_value("false")
            .value_name("BOOL")
            .hide_default_value(true)
            .hide_possible_values(true)
    });
    command = command.mut_subcommands(with_statuses);
    command.build();
    command
}

/// Returns `command` with its exit statuses at the end of its help, unless they are there.
fn with_statuses(command: Command) -> Command {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    if help.contains("Exit status") {
        return command;
    }
    command.after_help(format!("{help}\n\n{STATUSES}"))
}

/// Returns the options that are keys, in the order of the help.
pub fn keys(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_key = |arg: &&Arg| !NO_KEYS.contains(&arg.get_id().as_str());
    command.get_arguments().filter(is_key)
}

/// Returns the option of a key.
pub fn option_of<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    keys(command).find(|arg| arg.get_long() == Some(key))
}

/// Returns the name of a key by the name of its option's field.
pub fn key_of(id: &str) -> String {
    id.replace('_', "-")
}

/// Returns the name of an option's field.
pub fn id(arg: &Arg) -> String {
    arg.get_id().as_str().to_owned()
}

/// Returns whether the key is true or false.
pub fn is_flag(arg: &Arg) -> bool {
    let none_or_one = ValueRange::from(0..=1);
    arg.get_num_args() == Some(none_or_one)
}

/// Returns whether the key has a list of values.
pub fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Returns whether the key can change while the scheduler is loaded.
pub fn is_changeable(id: &str) -> bool {
    AT_RUN_TIME.contains(&id)
}

/// Returns the sentence of `there is no key ...`, with the most similar key if one is similar.
pub fn unknown(command: &Command, key: &str) -> String {
    let name = sfs_text::line(key, sfs_text::LINE_CHARS);
    let mut sentence = format!("there is no key {name}");
    let names = keys(command).filter_map(Arg::get_long);
    let distances = names.map(|name| {
        (
            strsim::damerau_levenshtein(name, &key.to_lowercase().replace('_', "-")),
            name,
        )
    });
    match distances.min() {
        Some((distance, similar)) if distance <= 1 + similar.len() / 4 => {
            sentence += &format!("; is {similar} meant?");
        }
        _ => sentence += "; scx_sfs config lists all keys",
    }
    sentence
}

/// Checks the values of a key by themselves.
///
/// # Errors
///
/// What is wrong with the first wrong one.
pub fn check(command: &Command, arg: &Arg, values: &[OsString]) -> Result<(), String> {
    let name = OsString::from(command.get_name());
    let arguments = values.iter().map(|value| argument(arg, value));
    let parsed = command
        .clone()
        .try_get_matches_from(std::iter::once(name).chain(arguments));
    let Err(error) = parsed else { return Ok(()) };
    // Other kinds are about other options, which this command line does not have.
    let is_about_it = matches!(
        error.kind(),
        ErrorKind::InvalidValue
            | ErrorKind::ValueValidation
            | ErrorKind::InvalidUtf8
            | ErrorKind::TooManyValues
            | ErrorKind::WrongNumberOfValues
            | ErrorKind::ArgumentConflict
    );
    if !is_about_it || (error.kind() == ErrorKind::ArgumentConflict && values.len() < 2) {
        return Ok(());
    }
    Err(reason(arg, &error))
}

/// Returns what is wrong with a value, without the name of the option.
fn reason(arg: &Arg, error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    let possible = arg.get_possible_values();
    if is_flag(arg) {
        return "want true or false".to_owned();
    }
    if possible.is_empty() {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        return first.trim_start_matches("error: ").to_owned();
    }
    let names: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
    format!("want one of {}", names.join(", "))
}

/// Returns the argument that gives an option a value.
pub fn argument(arg: &Arg, value: &OsStr) -> OsString {
    let long = arg.get_long().unwrap_or_default();
    let mut argument = OsString::from(format!("--{long}="));
    argument.push(value);
    argument
}
