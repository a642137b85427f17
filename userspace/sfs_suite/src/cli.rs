//! The command line.

use crate::run::{self, RunArgs};
use crate::same::{self, SameArgs};
use crate::search::{self, SearchArgs};
use crate::stress::{self, StressArgs};
use anyhow::Result;
use clap::{Parser, Subcommand};
use sfs_jobs::failure::{self, Failure};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the behaviour suite, a search for tenants that cheat, and mixes of load, in virtual
/// machines.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    task: Task,
    /// The repository (default: the one around the current folder)
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    tree: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the cases: `tests/run`
    Run(RunArgs),
    /// Put scx_sfs under mixes of load by stress-ng: `make stress`
    Stress(StressArgs),
    /// Search for plans by which a tenant gains
    Search(SearchArgs),
    /// Run a workload several times, and compare the runs
    Same(SameArgs),
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Stress(_) => "stress",
            Self::Search(_) => "search",
            Self::Same(_) => "same",
        }
    }
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let name = cli.task.name();
    let status = execute(cli).unwrap_or_else(|error| {
        // The user who interrupted it knows.
        if !matches!(error.downcast_ref(), Some(Failure::Interrupted(_))) {
            let _ = writeln!(std::io::stderr(), "{name}: {error:#}");
        }
        failure::status(&error)
    });
    ExitCode::from(status)
}

fn execute(cli: Cli) -> Result<u8> {
    let interrupt = Interrupt::catch()?;
    let tree = match cli.tree {
        Some(root) => Tree::new(root, None),
        None => Tree::find()?,
    };
    match cli.task {
        Task::Run(args) => run::run(&tree, &args, &interrupt),
        Task::Stress(args) => stress::run(&tree, &args),
        Task::Search(args) => search::run(&tree, &args),
        Task::Same(args) => same::run(&tree, &args, &interrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
