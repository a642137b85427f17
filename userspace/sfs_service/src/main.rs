//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_service::cli::main()
}
