//! The program `sfs_baselines`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sfs_baselines::main()
}
