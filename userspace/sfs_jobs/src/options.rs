//! Command lines whose options are also environment variables.

use clap::builder::Resettable;
use clap::{Arg, Command, CommandFactory, FromArgMatches};

/// Parses the command line, where an environment variable that is empty counts as one that
/// is not set, as in a shell's `${NAME:-default}`. Ends the process if it makes no sense.
pub fn parse<T: CommandFactory + FromArgMatches>() -> T {
    let mut command = without_empty_variables(T::command());
    let parsed = T::from_arg_matches(&command.get_matches_mut());
    parsed.unwrap_or_else(|error| error.format(&mut command).exit())
}

fn without_empty_variables(command: Command) -> Command {
    let is_empty = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command = command.mut_args(|arg| match is_empty(&arg) {
        true => arg.env(Resettable::Reset),
        false => arg,
    });
    command.mut_subcommands(without_empty_variables)
}
