//! The program `sfs_league`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_league::cli::main()
}
