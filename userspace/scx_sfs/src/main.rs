//! The program of scx_sfs; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_sfs::program::run()
}
