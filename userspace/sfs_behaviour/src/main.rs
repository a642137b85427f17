//! The behaviour suite: small cases about scx_sfs in a live kernel, run one after another and
//! reported as TAP, and the search for tenants that cheat. This crate has the program: its
//! options, the order of the cases, and the report. It loads schedulers and keeps all CPUs
//! busy: run it in a virtual machine (`tests/run`, `sfs_suite search`).

mod cases;
mod options;
mod suite;

use std::process::ExitCode;

use anyhow::{ensure, Context, Result};
use clap::Parser;
use nix::sys::prctl::set_child_subreaper;
use nix::unistd::geteuid;
use sfs_tenants::tenant;
use sfs_testbed::scheduler;

use options::Options;

fn main() -> ExitCode {
    if let Some(code) = faas_trial::play_role(std::env::args_os().skip(1)) {
        // The guard of a case.
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == tenant::PLAY) {
        // A task of a match; nobody reads its errors.
        let _ = tenant::play_words(&words[1..]);
        return ExitCode::FAILURE;
    }
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            let text = error.to_string();
            print!(
                "Bail out! {}",
                text.strip_prefix("error: ").unwrap_or(&text)
            );
            return ExitCode::FAILURE;
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("Bail out! {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what the command line asks for; returns whether all is well.
fn run(options: &Options) -> Result<bool> {
    if let Some(search) = options.search() {
        prepare()?;
        let cpus = std::thread::available_parallelism()?.get();
        return search.run(&options.program()?, cpus);
    }
    let cases = options.cases()?;
    if options.list {
        suite::list(&cases, options.apart());
        return Ok(true);
    }
    prepare()?;
    suite::run(&cases, options.apart(), options.part, &options.program()?)
}

/// Checks that the machine is fit for the suite.
fn prepare() -> Result<()> {
    ensure!(geteuid().is_root(), "only root can load a scheduler");
    ensure!(
        scheduler::state() == "disabled",
        "sched_ext is not free: its state is \"{}\"",
        scheduler::state()
    );
    set_child_subreaper(true).context("cannot adopt orphans")
}
