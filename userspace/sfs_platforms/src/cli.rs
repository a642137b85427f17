//! The command line.

use crate::platform::{FUNCTIONS_FRAMEWORK, LAMBDA};
use crate::python::{self, PythonArgs};
use crate::run;
use crate::settings::Settings;
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use sfs_jobs::options::parse;
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs real function platforms in VMs under several schedulers: see vm/platforms/README.md.
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
    /// Compare schedulers under Google's Functions Framework
    ///
    /// Installs Google's Functions Framework for Python into the cache, starts it in a VM, one
    /// for each function in a cgroup of its own, and sends it HTTP requests, under EEVDF and
    /// under scx_sfs: a table here, and a report.
    FunctionsFramework(Box<Settings>),
    /// Compare schedulers under AWS's runtime interface client
    ///
    /// Installs AWS's runtime interface client for Python into the cache, starts sandboxes of
    /// it in a VM, each function in a cgroup of its own, and sends HTTP requests to the small
    /// local Lambda that they ask for their events, under EEVDF and under scx_sfs: a table
    /// here, and a report.
    Lambda(Box<LambdaArgs>),
    /// Assemble the guests' Python in the cache, and print the path of its archive
    ///
    /// The archive has this machine's Python with its standard library, the packages of
    /// vm/platforms/requirements.txt, and the shared libraries of both.
    PythonRoot(PythonArgs),
}

#[derive(Debug, Args)]
struct LambdaArgs {
    #[command(flatten)]
    settings: Settings,
    /// Also send hints to this Unix datagram socket in the guest
    #[arg(long, env = "HINTS", value_name = "PATH")]
    hints: Option<String>,
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::FunctionsFramework(_) => FUNCTIONS_FRAMEWORK.name,
            Self::Lambda(_) => LAMBDA.name,
            Self::PythonRoot(_) => python::NAME,
        }
    }

    fn execute(self, tree: &Tree, interrupt: &Interrupt) -> Result<()> {
        match self {
            Self::FunctionsFramework(settings) => {
                run::run(tree, &FUNCTIONS_FRAMEWORK, &settings, Vec::new(), interrupt)
            }
            Self::Lambda(args) => {
                let hints = vec![("HINTS", args.hints.unwrap_or_default().into())];
                run::run(tree, &LAMBDA, &args.settings, hints, interrupt)
            }
            Self::PythonRoot(args) => {
                let archive = python::archive(tree, &args, interrupt)?;
                writeln!(std::io::stdout(), "{}", archive.display()).context("cannot print")
            }
        }
    }
}

/// The program: parses the command line, runs the task, and prints errors.
pub fn main() -> ExitCode {
    let cli: Cli = parse();
    let name = cli.task.name();
    sfs_jobs::failure::conclude(name, execute(cli).map(|()| 0))
}

fn execute(cli: Cli) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    let tree = match cli.tree {
        Some(root) => {
            let found = root.canonicalize();
            Tree::new(
                found.with_context(|| format!("cannot read {}", root.display()))?,
                None,
            )
        }
        None => Tree::find()?,
    };
    cli.task.execute(&tree, &interrupt)
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
