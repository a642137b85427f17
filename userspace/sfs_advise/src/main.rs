//! The program `sfs_advise`, which `scx_sfs advise` executes.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_advise::program::run()
}
