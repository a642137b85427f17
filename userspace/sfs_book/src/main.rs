//! The program `sfs_book`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_book::cli::main()
}
