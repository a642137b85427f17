//! The program `sfs_sensitivity`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_sensitivity::main()
}
