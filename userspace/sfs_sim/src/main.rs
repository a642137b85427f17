//! Exact simulation of schedulers on a trace.

use clap::Parser;
use sfs_sim::cli::Cli;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A closed standard output is not an error.
    match Cli::parse().execute() {
        Ok(line) => {
            let _ = writeln!(std::io::stdout(), "{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sfs_sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}
