//! scx_sfs: all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_sfs::program::run()
}
