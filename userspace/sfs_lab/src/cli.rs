//! The command line.

use crate::bench;
use crate::bench::args::{BenchArgs, Plan};
use crate::overhead::{self, OverheadArgs};
use crate::peers::{self, PeersArgs};
use crate::scale::{self, ScaleArgs};
use anyhow::Result;
use clap::{Parser, Subcommand};
use sfs_candidates::{self as policies, PoliciesArgs};
use sfs_full::full::{self, FullArgs};
use sfs_full::matrix::{self, MatrixArgs};
use sfs_jobs::failure::conclude;
use sfs_jobs::options::parse;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use sfs_parity::{self as parity, ParityArgs};
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
    /// Run everything that tests scx_sfs, in parts whose results are kept: `make test-full`
    Full(FullArgs),
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
    /// Count in the model what the kernel half costs on many CPUs, and print tables: `make scale`
    Scale(ScaleArgs),
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::Bench(_) => "bench",
            Self::Full(_) => "full",
            Self::Matrix(_) => "matrix",
            Self::Overhead(_) => "overhead",
            Self::Parity(_) => "parity",
            Self::Peers(_) => "peers",
            Self::Policies(_) => "policies",
            Self::Scale(_) => "scale",
        }
    }

    fn execute(self) -> Result<u8> {
        let interrupt = Interrupt::catch()?;
        let tree = Tree::find()?;
        match self {
            Self::Bench(args) => {
                let outcome = match args.plan(|name| std::env::var_os(name))? {
                    Plan::One(settings) => bench::run(&tree, &settings, &interrupt)?,
                    Plan::Series(series) => bench::series::run(&tree, &series, &interrupt)?,
                };
                Ok(outcome.status())
            }
            Self::Full(args) => full::run(&tree, &args, &interrupt),
            Self::Matrix(args) => matrix::run(&tree, args, &interrupt),
            Self::Overhead(args) => overhead::run(&tree, args, &interrupt),
            Self::Parity(args) => parity::run(&tree, args, &interrupt),
            Self::Peers(args) => peers::run(&tree, &args, &interrupt),
            Self::Policies(args) => policies::run(&tree, args, &interrupt),
            Self::Scale(args) => scale::run(&tree, &args, &interrupt),
        }
    }
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    let name = cli.command.name();
    conclude(name, cli.command.execute())
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
