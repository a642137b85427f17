//! Workloads, replay and measurement for function schedulers.

use clap::Parser;
use faasbench::cli::Cli;
use faasbench::replay::setup::{DISPATCH, KEEP, PEER};
use faasbench::replay::{dispatcher, keeper, peer};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before the command line is parsed: the memory of these processes must
    // stay small, because every invocation is forked from one of them.
    let mut args = std::env::args_os().skip(1);
    let role = args.next().unwrap_or_default();
    let mut next = || {
        args.next()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    match role.to_str() {
        Some(DISPATCH) => return dispatcher::main(&next()),
        Some(KEEP) => return keeper::main(&next(), &next()),
        Some(PEER) => return peer::main(),
        _ => {}
    }
    match Cli::parse().execute() {
        Ok(code) => code,
        Err(error) => {
            faas_data::output::note(&format!("faasbench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
