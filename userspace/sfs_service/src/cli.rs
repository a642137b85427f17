//! The command line.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use sfs_jobs::failure::{self, Failure};
use sfs_jobs::signals::Interrupt;
use sfs_jobs::tree::Tree;

use crate::guest;
use crate::host::{self, TestArgs};
use crate::part::Part;

/// Tries the service under a live systemd, in a virtual machine.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Boot Debian with its systemd for each part, and run the checks there: `make test-service`
    ///
    /// The guests run in virtual time. The root file system is made once, as root with
    /// mmdebstrap (scripts/setup-host fresh). Prints a line for each check; the exit status is
    /// 1 if one fails, 2 if a program is not built, 125 if there is no root file system.
    Test(TestArgs),
    /// The guest's half: run the checks of one part; the exit status is 1 if one fails
    Guest {
        /// The part
        part: Part,
    },
    /// Use a CPU until a signal ends it: the task that keeps the CPU in the part stall
    #[command(hide = true)]
    Spin,
}

/// The program: parses the command line, does what it says, and says what went wrong.
pub fn main() -> ExitCode {
    let status = execute(Cli::parse()).unwrap_or_else(|error| {
        // Who interrupted it knows.
        if !matches!(error.downcast_ref(), Some(Failure::Interrupted(_))) {
            let _ = writeln!(std::io::stderr(), "sfs_service: {error:#}");
        }
        failure::status(&error)
    });
    ExitCode::from(status)
}

fn execute(cli: Cli) -> Result<u8> {
    match cli.task {
        Task::Test(args) => host::run(&Tree::find()?, &args, &Interrupt::catch()?),
        Task::Guest { part } => guest::run(part),
        Task::Spin => spin(),
    }
}

/// Nothing keeps an emulated CPU busy with less work for the host.
fn spin() -> ! {
    loop {
        black_box(());
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
