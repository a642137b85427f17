//! The command line.

use crate::bench::{self, args::BenchArgs};
use crate::matrix::{self, MatrixArgs};
use crate::overhead::{self, OverheadArgs};
use crate::peers::{self, PeersArgs};
use crate::policies::{self, PoliciesArgs};
use anyhow::Result;
use clap::builder::Resettable;
use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use sfs_jobs::failure::{self, Failure};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_parity::{self as parity, ParityArgs};
use std::io::Write;
use std::process::ExitCode;

/// Runs the measurements of this repository, as make does.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compare schedulers on one trace, each in a VM of its own: `make bench`
    Bench(Box<BenchArgs>),
    /// Run the behaviour suite on several kernels and machines, and print a table: `make matrix`
    Matrix(MatrixArgs),
    /// Measure what scx_sfs itself costs, and print tables: `make overhead`
    Overhead(OverheadArgs),
    /// Compare programs that are not functions under several schedulers, and print tables: `make
    /// parity`
    Parity(ParityArgs),
    /// Build the sched_ext schedulers to compare with: `make peers`
    Peers(PeersArgs),
    /// Simulate the candidates for `--policy` on many workloads, and print tables: `make policies`
    Policies(PoliciesArgs),
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::Bench(_) => "bench",
            Self::Matrix(_) => "matrix",
            Self::Overhead(_) => "overhead",
            Self::Parity(_) => "parity",
            Self::Peers(_) => "peers",
            Self::Policies(_) => "policies",
        }
    }

    fn execute(self) -> Result<u8> {
        let interrupt = Interrupt::catch()?;
        let tree = Tree::find()?;
        match self {
            Self::Bench(args) => {
                let settings = args.settings(|name| std::env::var_os(name))?;
                Ok(bench::run(&tree, &settings, &interrupt)?.status())
            }
            Self::Matrix(args) => matrix::run(&tree, args, &interrupt),
            Self::Overhead(args) => overhead::run(&tree, args, &interrupt),
            Self::Parity(args) => parity::run(&tree, args, &interrupt),
            Self::Peers(args) => peers::run(&tree, &args, &interrupt),
            Self::Policies(args) => policies::run(&tree, args, &interrupt),
        }
    }
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    let name = cli.command.name();
    let status = cli.command.execute().unwrap_or_else(|error| {
        // The user who interrupted it knows.
        if !matches!(error.downcast_ref(), Some(Failure::Interrupted(_))) {
            let _ = writeln!(std::io::stderr(), "{name}: {error:#}");
        }
        failure::status(&error)
    });
    ExitCode::from(status)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
