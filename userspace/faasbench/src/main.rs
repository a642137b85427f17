//! Workloads, replay and measurement for function schedulers.

use faasbench::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before the command line is parsed: the memory of these processes must
    // stay small, because every invocation is forked from one of them.
    if let Some(code) = faas_replay::play_role(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(code) = faas_baselines::play_role(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(code) = faas_trial::play_role(std::env::args_os().skip(1)) {
        return code;
    }
    match Cli::of_process().execute() {
        Ok(code) => code,
        Err(error) => {
            faas_data::output::note(&format!("faasbench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
