//! The program `sfs_paper`.

use sfs_paper::cli::{say, Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_jobs::options::parse::<Cli>()
        .execute()
        .unwrap_or_else(|error| {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        })
}
