//! The program.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_paper::cli::Cli::parse()
        .execute()
        .unwrap_or_else(|error| {
            sfs_paper::cli::say(&format!("{error:#}"));
            ExitCode::FAILURE
        })
}
