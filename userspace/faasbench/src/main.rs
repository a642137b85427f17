//! Workloads, replay and measurement for function schedulers.

use clap::Parser;
use faasbench::cli::Cli;
use faasbench::replay::{dispatcher, DISPATCH};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before the command line is parsed: the dispatcher's memory must stay
    // small, because every invocation is forked from it.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == DISPATCH) {
        let board = args.next().unwrap_or_default();
        return dispatcher::main(&board.to_string_lossy());
    }
    match Cli::parse().execute() {
        Ok(code) => code,
        Err(error) => {
            faasbench::output::note(&format!("faasbench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
