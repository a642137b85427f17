//! The program `sfs_wild`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_wild::cli::main()
}
